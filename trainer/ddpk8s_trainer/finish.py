"""After the last step: the best weights, the exported model, the report."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from torch.distributed.checkpoint import load  # type: ignore[attr-defined]

from ddpk8s_trainer.beats import beat
from ddpk8s_trainer.checkpoint.manifest import InvalidCheckpointError
from ddpk8s_trainer.checkpoint.verify import check_content, check_structure
from ddpk8s_trainer.config import TrainerConfig
from ddpk8s_trainer.export import export_model
from ddpk8s_trainer.report import write_report
from ddpk8s_trainer.reporting import write_status
from ddpk8s_trainer.run import Run

_CHECKED_SAMPLES = 32  # samples whose logits a fresh process must repeat


def finish(run: Run, tokenizer: Any, first_digest: str) -> None:
    """Export the model and write the report. Collective; ends with rank 0's note to the agent.

    Raises:
        TrainingFailed: the exported model does not give the same logits in a fresh process.
    """
    run.checkpoints.finish()
    output = run.training.output
    source = run.state.step
    if output.model == "best" and run.state.best_step not in (None, run.state.step):
        source = _load_best(run)
    model_directory = run.config.job_directory / "model"
    if output.export:
        run.recorder.phase("exporting")
        run.gang.decide(lambda: _export(run, tokenizer, first_digest, source))
    run.recorder.end("finished", run.state.step)
    run.recorder.close()
    run.checkpoints.close()
    run.sample_log.close()
    if not run.gang.is_main:
        return
    report = report_page(run.config) if output.report else None
    write_status(
        "finished.json",
        {
            "step": run.state.step,
            "checkpoint": str(run.config.job_directory / f"step-{run.state.step:08d}"),
            "model": str(model_directory) if output.export else None,
            "report": str(report) if report else None,
            "evaluation": _figures(run, source),
        },
    )


def _figures(run: Run, step: int) -> dict[str, Any]:
    """Return the evaluation of the weights of `step`, the ones that are exported."""
    state = run.state
    value = state.best_value if step == state.best_step else state.last_value
    # Values are negated where less is better.
    return {
        "metric": run.training.evaluation.metric,
        "value": None if value is None else abs(value),
        "step": step,
    }


def report_page(config: TrainerConfig) -> Path | None:
    """Write the report and return its path; a report that fails costs the training nothing but the report."""
    try:
        return write_report(config.job_directory)
    except Exception as error:
        print(f"warning: no report was written: {type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201
        return None


def _export(run: Run, tokenizer: Any, first_digest: str, step: int) -> None:
    data = run.train_data if run.validation_data is None else run.validation_data
    collate = run.collate if run.validation_data is None else run.collate_validation
    samples = [collate(np.arange(min(len(data), _CHECKED_SAMPLES), dtype=np.int64))]
    directory = run.config.job_directory / "model"
    result = export_model(run.strategy.module, tokenizer, run.labels, directory, samples, first_digest)
    run.say(
        f"model of step {step} exported to {directory} and read again in a fresh process: logits of "
        f"{result.samples} samples differ by {result.max_difference:.1e} at most"
    )


def _load_best(run: Run) -> int:
    """Load the weights of the best step's checkpoint; return the step whose weights the model has now."""
    best, path = run.state.best_step, run.checkpoints.best
    assert best is not None
    problem = run.gang.decide(lambda: _problem(path, best))
    if problem or path is None:
        run.say(
            f"the checkpoint of the best step {best} cannot be used ({problem}): the last weights are exported"
        )
        return run.state.step
    beat()
    weights = {"model": run.strategy.module.state_dict()}
    load(weights, checkpoint_id=path, process_group=run.gang.control)
    run.strategy.module.load_state_dict(weights["model"])
    return best


def _problem(path: Path | None, step: int) -> str | None:
    """Return why a checkpoint cannot be used: it was written long ago, and disks forget."""
    if path is None:
        return "it is gone"
    try:
        check_content(path, check_structure(path, step), 0, 1)
    except InvalidCheckpointError as error:
        return str(error)
    return None

"""One rank of a training, from its configuration to its exit code."""

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from ddpk8s_trainer.beats import open_beats
from ddpk8s_trainer.callbacks import Callback
from ddpk8s_trainer.config import TrainerConfig, load_config
from ddpk8s_trainer.distributed import Gang, join_gang, leave_gang
from ddpk8s_trainer.errors import NonFiniteLoss, Stopped, TrainerError
from ddpk8s_trainer.finish import finish, report_page
from ddpk8s_trainer.loop import train
from ddpk8s_trainer.metrics import Recorder, RunFacts, open_recorder
from ddpk8s_trainer.reporting import report_error, write_status
from ddpk8s_trainer.setup import build_run
from ddpk8s_trainer.signals import StopRequest


def main(arguments: Sequence[str], stop: StopRequest, callbacks: Sequence[Callback] = ()) -> int:
    """Train as configured; return 0 trained, 78 a mistake, 1 failed, 143 stopped after saving."""
    parser = argparse.ArgumentParser(
        prog="ddpk8s_trainer", description="One rank of the bundled trainer, under torchrun."
    )
    parser.add_argument("--config", type=Path, required=True, help="JSON file with job, runId and training")
    options = parser.parse_args(arguments)
    rank = int(os.environ.get("RANK", "0"))
    open_beats(rank)
    try:
        config = load_config(options.config)
        _quiet_libraries(config)
        gang = join_gang()
        recorder = _open_recorder(config, gang)
    except TrainerError as error:
        return report_error(error, rank)
    try:
        _run(config, gang, stop, recorder, callbacks)
    except Stopped as error:
        _end(recorder, "stopped", error.step)
        code = report_error(error, rank)
    except BaseException as error:
        if not isinstance(error, TrainerError):
            traceback.print_exc()
        _end(recorder, getattr(error, "reason", type(error).__name__), getattr(error, "step", None))
        # Other ranks may be anywhere: a tidy goodbye to them could wait for ever.
        _leave_now(report_error(error, rank))
    else:
        code = 0
    leave_gang()
    return code


def _run(
    config: TrainerConfig, gang: Gang, stop: StopRequest, recorder: Recorder, callbacks: Sequence[Callback]
) -> None:
    recorder.phase("loading")
    run, tokenizer, first_digest = build_run(config, gang, stop, recorder, callbacks)
    if gang.is_main:
        document = {"job": config.job, "runId": config.run_id, "training": config.training.to_document()}
        (config.job_directory / "training.json").write_text(
            json.dumps(document, indent=2) + "\n", encoding="utf-8"
        )
    try:
        train(run)
    except NonFiniteLoss:
        # The parameters are still those of the step before: keep them, so that nothing before it is lost.
        if run.state.step and run.state.saved_step != run.state.step:
            run.save(wait=True)
        raise
    except Stopped:
        run.checkpoints.finish()
        run.checkpoints.close()
        # Together: torchrun ends the others soon after the first rank has left.
        gang.gather(None)
        run.sample_log.close()
        if gang.is_main:
            step = run.state.step
            path = str(config.job_directory / f"step-{step:08d}") if run.state.saved_step == step else None
            write_status("stopped.json", {"step": step, "checkpoint": path})
            recorder.end("stopped", step)
            recorder.close()
            if config.training.output.report:
                report_page(config)
        raise
    finish(run, tokenizer, first_digest)


def _open_recorder(config: TrainerConfig, gang: Gang) -> Recorder:
    """Open rank 0's recorder; all ranks learn together that the job directory cannot be used."""
    tensorboard = config.training.metrics.tensorboard
    facts = RunFacts(
        config.job_directory, config.run_id, config.attempt, gang.world_size, gang.device.type, tensorboard
    )
    opened: list[Recorder] = []
    gang.decide(lambda: opened.append(open_recorder(facts, gang.rank)))
    return opened[0] if opened else Recorder()


def _end(recorder: Recorder, reason: str, step: int | None) -> None:
    recorder.end(reason, step or 0)
    recorder.close()


def _quiet_libraries(config: TrainerConfig) -> None:
    """Keep libraries from talking over the progress line; their mistakes still become errors."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if config.training.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)


def _leave_now(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

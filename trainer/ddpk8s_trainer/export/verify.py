"""Read an exported model in a fresh process and compare: `python -m ddpk8s_trainer.export.verify DIR FILE`.

Prints one line of JSON and exits with 1 if anything differs.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from ddpk8s_trainer.export.digest import parameters_digest
from ddpk8s_trainer.export.expected import Expected, compute_logits

TOLERANCE = 1e-5
# Not the batches in which the logits were computed: another size and order, so that padding differs too.
BATCH_SIZE = 3


@dataclass
class Verdict:
    """What was found.

    Attributes:
        problems: One sentence each; empty if all is well.
        max_difference: Largest absolute difference of a logit; None if none were computed.
        tolerance: What it may be: 1e-5, and in proportion for logits beyond 1.
        digest: Of the parameters read.
    """

    problems: list[str] = field(default_factory=list)
    max_difference: float | None = None
    tolerance: float = TOLERANCE
    digest: str | None = None


def verify(directory: Path, expected: Expected) -> Verdict:
    """Return the verdict on a model directory."""
    verdict = Verdict()
    try:
        model, tokenizer = _load(directory, expected.remote_code, verdict)
    except Exception as error:  # whatever a library says of a broken file is the verdict
        verdict.problems.append(f"it does not load: {type(error).__name__}: {error}")
        return verdict
    _compare_weights(model, expected, verdict)
    _compare_logits(model, tokenizer, expected, verdict)
    _compare_tokens(tokenizer, expected, verdict)
    return verdict


def _load(directory: Path, remote_code: bool, verdict: Verdict) -> tuple[Any, Any]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    common = {"local_files_only": True, "trust_remote_code": remote_code}
    model, info = AutoModelForSequenceClassification.from_pretrained(
        directory, dtype=torch.float32, output_loading_info=True, **common
    )
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info.get(kind):
            names = ", ".join(sorted(map(str, info[kind]))[:5])
            verdict.problems.append(f"its weights have {kind.replace('_', ' ')}: {names}")
    return model.eval(), AutoTokenizer.from_pretrained(directory, **common)


def _compare_weights(model: Any, expected: Expected, verdict: Verdict) -> None:
    verdict.digest = parameters_digest(model)
    if verdict.digest != expected.digest:
        verdict.problems.append(f"its weights are {verdict.digest}, in memory they were {expected.digest}")
    if verdict.digest == expected.initial_digest:
        verdict.problems.append(f"its weights ({verdict.digest}) are those from before the training")
    labels = [model.config.id2label.get(number) for number in range(model.config.num_labels)]
    if labels != expected.labels:
        verdict.problems.append(f"its labels are {labels}, not {expected.labels}")


def _compare_logits(model: Any, tokenizer: Any, expected: Expected, verdict: Verdict) -> None:
    reference = torch.from_numpy(expected.logits)
    rows = expected.rows[::-1]
    logits = compute_logits(model, rows, BATCH_SIZE, tokenizer.pad_token_id).flip(0)
    if logits.shape != reference.shape:
        shapes = f"{tuple(logits.shape)}, not {tuple(reference.shape)}"
        verdict.problems.append(f"its logits have the shape {shapes}")
        return
    difference = (logits - reference).abs().max().item()
    verdict.max_difference = difference
    # fp32 has seven digits: what is 1e-5 for a logit of 1 is 1e-4 for one of 10.
    verdict.tolerance = TOLERANCE * max(1.0, reference.abs().max().item())
    if not difference <= verdict.tolerance:
        verdict.problems.append(
            f"its logits differ by up to {difference:.3g} from those in memory over {len(rows)} samples "
            f"(allowed: {verdict.tolerance:.3g})"
        )


def _compare_tokens(tokenizer: Any, expected: Expected, verdict: Verdict) -> None:
    for text, tokens in zip(expected.texts, expected.tokens, strict=True):
        found = tokenizer(text)["input_ids"]
        if found != tokens:
            verdict.problems.append(f"its tokenizer makes {found[:12]} of {text[:40]!r}, not {tokens[:12]}")
            return


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ddpk8s_trainer.export.verify", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR", help="model directory")
    parser.add_argument("expected", type=Path, metavar="FILE", help="the .npz file that the export wrote")
    options = parser.parse_args(arguments)
    verdict = verify(options.directory, Expected.load(options.expected))
    print(json.dumps(asdict(verdict)))  # noqa: T201 - standard output is the result
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())

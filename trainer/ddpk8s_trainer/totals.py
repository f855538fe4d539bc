"""What the ranks agreed on in the one all-reduce of an optimizer step."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Totals:
    """Sums over all ranks, equal on all of them.

    Attributes:
        loss: Mean loss of the global batch.
        samples: Samples of the global batch.
        tokens: Tokens, without padding.
        padded_tokens: The same with padding.
        bad_ranks: Number of ranks whose loss is not finite.
        stop_ranks: Number of ranks that were asked to stop.
        save_due: Whether rank 0's clock says that a checkpoint is due.
        bad_ids: Ids of this rank's own samples whose loss is not finite; the one thing ranks do not share.
    """

    loss: float
    samples: int
    tokens: int
    padded_tokens: int
    bad_ranks: int
    stop_ranks: int
    save_due: bool
    bad_ids: tuple[int, ...] = ()

"""How long a sequence may be for a model."""

from torch import nn

from ddpk8s_trainer.errors import ModelMistake


def longest_sequence(module: nn.Module) -> int | None:
    """Return the longest sequence in tokens that the model has positions for; None for no limit.

    RoBERTa-like models count positions from the padding id on, which makes their table that much shorter.
    """
    for name, part in module.named_modules():
        if name.endswith(("position_embeddings", "embed_positions", "wpe")) and isinstance(
            part, nn.Embedding
        ):
            used = 0 if part.padding_idx is None else part.padding_idx + 1
            return part.num_embeddings - used
    return None


def check_length(module: nn.Module, max_length: int) -> None:
    """Check that sequences of `max_length` tokens fit.

    Raises:
        ModelMistake: they do not.
    """
    limit = longest_sequence(module)
    if limit is not None and max_length > limit:
        raise ModelMistake(
            f"spec.training.data.maxLength is {max_length} but the model has positions for {limit} tokens",
            f"set maxLength to at most {limit}",
        )

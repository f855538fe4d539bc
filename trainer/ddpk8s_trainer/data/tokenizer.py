"""The tokenizer: loaded from a directory or the hub, or built from the training texts."""

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ddpk8s.spec.training import Model
from ddpk8s_trainer.errors import ModelMistake

PARALLELISM = "TOKENIZERS_PARALLELISM"
HUB_SECONDS = 5.0

# The library's threads do not survive a fork, and forks (data loader workers, a user's subprocess) warn about
# them: off, except while `parallel_tokenizers` has work for all cores. Who sets the variable decides.
_asked_by_user = os.environ.get(PARALLELISM)
os.environ.setdefault(PARALLELISM, "false")


@contextmanager
def parallel_tokenizers() -> Iterator[None]:
    """Let the tokenizers library use all cores within the block, unless the environment said otherwise."""
    before = os.environ.get(PARALLELISM, "false")
    os.environ[PARALLELISM] = _asked_by_user or "true"
    try:
        yield
    finally:
        os.environ[PARALLELISM] = before


def tokenizer_name(model: Model) -> tuple[str, str] | None:
    """Return (directory or hub id, configuration field) of the tokenizer, or None when it is to be built."""
    if model.tokenizer:
        return model.tokenizer, "spec.training.model.tokenizer"
    if model.build_tokenizer:
        return None
    if model.path:
        return model.path, "spec.training.model.path"
    raise ModelMistake(
        "no tokenizer: spec.training.model has neither tokenizer nor buildTokenizer nor path",
        hint="add spec.training.model.buildTokenizer: {} to make one from the training texts",
    )


def load_tokenizer(name: str, model: Model, field: str) -> Any:
    """Load a tokenizer and check what batches need of it.

    Args:
        name: Directory or hub id.
        model: The section `spec.training.model`, for revision and trust.
        field: Configuration field that named it, for messages.

    Returns:
        A `transformers.PreTrainedTokenizerBase`.

    Raises:
        ModelMistake: It is neither a directory nor reachable on the hub, cannot be loaded, or has no padding
        token.
    """
    from transformers import AutoTokenizer

    local = Path(name).is_dir()
    if not local and _looks_like_path(name):
        raise ModelMistake(f"{field} {name} is no directory", hint=_path_hint(Path(name)))
    revision = None if local or field == "spec.training.model.tokenizer" else model.revision
    # Loading is the library's affair; whatever it raises means that this tokenizer cannot be used.
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            name,
            revision=revision,
            trust_remote_code=model.trust_remote_code,
            local_files_only=local or not hub_reachable(),
        )
    except Exception as error:
        raise _cannot_load(name, local, field, error) from error
    if tokenizer.pad_token_id is None:
        raise ModelMistake(
            f"{field} {name}: the tokenizer has no padding token, and batches need one",
            hint="set one and save the tokenizer again: tokenizer.pad_token = tokenizer.eos_token",
        )
    return tokenizer


def hub_reachable() -> bool:
    """Return whether the hub answers at all, within some seconds.

    Asked first, since the library itself tries for most of a minute. Without the hub what it downloaded
    before is used.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=HUB_SECONDS):
            return True
    except urllib.error.HTTPError:
        return True  # an answer, whatever it says
    except (OSError, ValueError):
        return False


def _looks_like_path(name: str) -> bool:
    """Return whether a name can be no hub id (`name` or `owner/name`)."""
    return name.startswith(("/", ".", "~")) or name.count("/") > 1 or Path(name).is_file()


def _path_hint(path: Path) -> str:
    if path.is_file():
        return f"name the directory that holds it: {path.parent}"
    parent = path.parent
    if not parent.is_dir():
        return f"there is no directory {parent} either"
    inside = sorted(entry.name for entry in parent.iterdir() if entry.is_dir() and entry.name[0] != ".")
    return f"directories in {parent}: {', '.join(inside[:10]) or 'none'}"


def _cannot_load(name: str, local: bool, field: str, error: Exception) -> ModelMistake:
    """Return the mistake in our words; the library's own first line says the detail."""
    detail = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(". ")
    detail = "" if detail.endswith(":") else f": {detail}"  # the start of a list of guesses says nothing
    if local:
        present = sorted(entry.name for entry in Path(name).iterdir())
        holds = ", ".join(present[:15]) or "nothing"
        return ModelMistake(
            f"{field} {name}: no tokenizer can be loaded from this directory{detail}",
            hint=f"it needs tokenizer.json or the vocabulary files, and holds: {holds}",
        )
    return ModelMistake(
        f"{field} {name}: no such directory, and the hub has no such tokenizer or is out of reach{detail}",
        hint="without network, copy the model here and name its directory",
    )


def content_of(tokenizer: Any) -> str:
    """Return all that decides how a tokenizer cuts texts, as text to hash."""
    if tokenizer.is_fast:
        backend: str = tokenizer.backend_tokenizer.to_str()
        return backend
    return repr((type(tokenizer).__name__, sorted(tokenizer.get_vocab().items()), tokenizer.init_kwargs))

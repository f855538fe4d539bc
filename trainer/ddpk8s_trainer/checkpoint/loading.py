"""A checkpoint into a given state, for any number of ranks."""

import io
import warnings
from typing import Any

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import ReadItem
from torch.distributed.checkpoint.state_dict_loader import load

from ddpk8s_trainer.beats import beat
from ddpk8s_trainer.checkpoint.finding import Found
from ddpk8s_trainer.checkpoint.plan import PER_RANK, State, pack_per_rank, unpack_per_rank
from ddpk8s_trainer.checkpoint.ranks import Ranks
from ddpk8s_trainer.errors import CheckpointMistake, TrainingFailed

# As many differences are named; the rest is counted.
_NAMED = 5


class _Planner(DefaultLoadPlanner):
    """torch's, but values go under the state's own keys: torch makes text of keys that are numbers."""

    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None:  # noqa: ARG002 - torch's signature
        beat()

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        # Checkpoints are trusted as the training's own files; they hold more than tensors (generator states).
        loaded = torch.load(value, weights_only=False)
        container: Any = self.original_state_dict
        *path, last = self.mappings[read_item.dest_index.fqn]
        for part in path:
            container = container[_own_key(container, part)]
        container[_own_key(container, last)] = loaded


def _own_key(container: Any, part: str | int) -> Any:
    if isinstance(container, dict) and part not in container:
        return next(key for key in container if str(key) == part)
    return part


def load_checkpoint(ranks: Ranks, found: Found, state: State) -> State:
    """Fill `state` from a checkpoint, in place. Collective.

    Args:
        ranks: All ranks.
        found: The checkpoint.
        state: A state with the keys, shapes and types that were saved. Tensors are written in place, other
            values are replaced. Its `per_rank` entry is replaced by what this rank saved, or by None when
            another number of ranks saved it.

    Returns:
        The same state.

    Raises:
        CheckpointMistake: The checkpoint holds another state; up to five differences are named.
        TrainingFailed: It could not be read.
    """
    common = {key: value for key, value in state.items() if key != PER_RANK}
    reader = FileSystemReader(found.path)
    metadata = _read_metadata(ranks, reader, found)
    own_is_stored = found.per_rank and f"{PER_RANK}.{ranks.rank}" in metadata.state_dict_metadata
    _agree(ranks, _differences(metadata, common), found)
    if PER_RANK in state and own_is_stored:
        common[PER_RANK] = pack_per_rank(ranks.rank, None)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "torch.distributed is disabled")  # one process needs none
            load(
                common,
                storage_reader=reader,
                planner=_Planner(),
                process_group=ranks.group,
                no_dist=ranks.group is None,
            )
    except CheckpointException as error:  # torch has told all ranks
        raise TrainingFailed(f"checkpoint {found.path} could not be read: {_cause(error)}") from error
    if PER_RANK in state:
        common[PER_RANK] = unpack_per_rank(ranks.rank, common[PER_RANK]) if own_is_stored else None
    state.update(common)
    return state


def _read_metadata(ranks: Ranks, reader: FileSystemReader, found: Found) -> Metadata:
    metadata, problem = None, ""
    try:
        metadata = reader.read_metadata()
    except Exception as error:  # unpickling may raise anything; the other ranks must hear of it
        problem = f"rank {ranks.rank}: {type(error).__name__}: {error}"
    for each in ranks.gather(problem):
        if each:
            raise TrainingFailed(f"checkpoint {found.path} could not be read: {each}")
    assert metadata is not None
    return metadata


def _differences(metadata: Metadata, state: State) -> list[str]:
    """In words, what the checkpoint and this rank's state do not have in common."""
    planner = DefaultLoadPlanner()
    planner.set_up_planner(state)
    stored = {k: v for k, v in metadata.state_dict_metadata.items() if not k.startswith(f"{PER_RANK}.")}
    own = {k: v for k, v in planner.state_dict.items() if not k.startswith(f"{PER_RANK}.")}
    different = [f"{key} is not in the checkpoint" for key in own.keys() - stored.keys()]
    different += [f"{key} is only in the checkpoint" for key in stored.keys() - own.keys()]
    for key in own.keys() & stored.keys():
        ours, theirs = _describe(own[key]), _describe(stored[key])
        if ours != theirs:
            different.append(f"{key} is {theirs} in the checkpoint and {ours} here")
    return sorted(different)


def _describe(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {list(value.shape)}"
    if isinstance(value, TensorStorageMetadata):
        return f"{str(value.properties.dtype).removeprefix('torch.')} of shape {list(value.size)}"
    return "no tensor"


def _agree(ranks: Ranks, differences: list[str], found: Found) -> None:
    """Raise the same mistake on every rank if any rank's state differs."""
    differences = next((each for each in ranks.gather(differences) if each), [])
    if differences:
        more = f"\n  and {len(differences) - _NAMED} more" if len(differences) > _NAMED else ""
        lines = "".join(f"\n  {line}" for line in differences[:_NAMED])
        raise CheckpointMistake(
            f"checkpoint {found.path} does not fit this model and optimizer:{lines}{more}",
            hint="undo the change, or start a new run (`ddpk8s run --fresh`)",
        )


def _cause(error: CheckpointException) -> str:
    rank, cause = next(iter(error.failures.items()))
    return f"rank {rank}: {cause[0]}"

"""Which rank writes what.

torch.distributed.checkpoint plans it: replicated tensors are dealt out so that each rank writes about its
share, sharded ones are written where they are. Planning costs several messages between the ranks, so a plan is
kept for as long as every rank's state has the same keys, shapes and types.
"""

import dataclasses
import io
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import CURRENT_DCP_VERSION, _StorageInfo
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan, WriteItem, WriteItemType

from ddpk8s_trainer.checkpoint.image import FileImage
from ddpk8s_trainer.checkpoint.ranks import Ranks

# Objects written by a rank: key, offset and length in its file of objects.
ObjectExtent = tuple[str, int, int]
State = dict[str, Any]
PER_RANK = "per_rank"
T = TypeVar("T")


def tensor_file(rank: int) -> str:
    """Name of the file with a rank's tensors, after torch.distributed.checkpoint."""
    return f"__{rank}_0.distcp"


def object_file(rank: int) -> str:
    """Name of the file with a rank's other values."""
    return f"__{rank}_1.distcp"


def pack_per_rank(rank: int, value: object) -> State:
    """A rank's own value as an entry of the common state, opaque to the planning."""
    content = io.BytesIO()
    torch.save(value, content)
    return {str(rank): content.getvalue()}


def unpack_per_rank(rank: int, packed: State) -> Any:
    """The value given to :func:`pack_per_rank`."""
    return torch.load(io.BytesIO(packed[str(rank)]), weights_only=False)


class Share:
    """What this rank writes; on rank 0 also the description of the whole checkpoint."""

    def __init__(self, items: list[WriteItem], metadata: Metadata | None) -> None:
        self._tensors = [item for item in items if item.type != WriteItemType.BYTE_IO]
        self._objects = [item for item in items if item.type == WriteItemType.BYTE_IO]
        self.image = FileImage([_shape_and_type(item) for item in self._tensors])
        self._metadata = metadata
        self._placed: dict[MetadataIndex, _StorageInfo] = {}

    def placed(self, rank: int) -> dict[MetadataIndex, _StorageInfo]:
        """Where this rank's tensors lie on disk."""
        extents = zip(self._tensors, self.image.extents, strict=True)
        return {i.index: _StorageInfo(tensor_file(rank), e.offset, e.length) for i, e in extents}

    def set_placed(self, placed: list[dict[MetadataIndex, _StorageInfo]]) -> None:
        """Tell rank 0 where all ranks' tensors lie."""
        for each in placed:
            self._placed.update(each)

    def stage(self, planner: DefaultSavePlanner) -> tuple[bytes, list[ObjectExtent]]:
        """Copy the tensors into :attr:`image`, and make bytes of the other values."""
        self.image.stage([_tensor(planner, item) for item in self._tensors])
        content, extents = bytearray(), []
        for item in self._objects:
            piece = planner.resolve_data(item)
            assert not isinstance(piece, torch.Tensor)
            extents.append((item.index.fqn, len(content), piece.getbuffer().nbytes))
            content += piece.getbuffer()
        return bytes(content), extents

    def describe(self, objects: list[list[ObjectExtent]]) -> bytes:
        """Content of torch's `.metadata` file. Rank 0 only.

        Args:
            objects: What each rank's :meth:`stage` returned of its objects.
        """
        assert self._metadata is not None
        stored = dict(self._placed)
        for rank, extents in enumerate(objects):
            for key, offset, length in extents:
                stored[MetadataIndex(key)] = _StorageInfo(object_file(rank), offset, length)
        metadata = dataclasses.replace(self._metadata, storage_data=stored, version=CURRENT_DCP_VERSION)
        return pickle.dumps(metadata)


class Planning:
    """Makes the plan, or keeps the one there is."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._signature: list[object] | None = None
        self._share: Share | None = None

    def prepare(self, state: State) -> tuple[DefaultSavePlanner, bool]:
        """Look at a state: a planner for it, and whether the last plan does not fit it. Not collective."""
        planner = DefaultSavePlanner()
        planner.set_up_planner(state, is_coordinator=self._ranks.rank == 0)
        return planner, self._share is None or _signature(planner) != self._signature

    def share(self, planner: DefaultSavePlanner, *, renew: bool) -> Share:
        """The plan, made anew if any rank needs it. Collective, with the same `renew` everywhere.

        Raises:
            ValueError: The ranks' states do not make one checkpoint. On every rank.
        """
        if renew or self._share is None:
            self._signature = None
            if self._share is not None:
                self._share.image.release()
            self._share = self._negotiate(planner)
            self._signature = _signature(planner)
        return self._share

    def _negotiate(self, planner: DefaultSavePlanner) -> Share:
        rank = self._ranks.rank
        plans = _agreed(self._ranks.gather(_attempt(planner.create_local_plan)))
        metadata: Metadata | None = None
        answer: list[SavePlan] | _Problem = []
        if rank == 0:
            whole = _attempt(lambda: planner.create_global_plan(plans))
            answer, metadata = (whole, None) if isinstance(whole, _Problem) else whole
        [items] = _agreed([self._ranks.broadcast(answer)])
        share = _attempt(lambda: Share(items[rank].items, metadata))
        placed = _agreed(self._ranks.gather(share if isinstance(share, _Problem) else share.placed(rank)))
        assert isinstance(share, Share)
        share.set_placed(placed)
        return share

    def close(self) -> None:
        """Give the staging memory back."""
        if self._share is not None:
            self._share.image.release()
        self._share = None


@dataclasses.dataclass(frozen=True)
class _Problem:
    """What went wrong on a rank, instead of what it should have given the others."""

    text: str


def _attempt(action: Callable[[], T]) -> T | _Problem:
    try:
        return action()
    except Exception as error:  # whatever it is, the other ranks are waiting for this one's answer
        return _Problem(f"{type(error).__name__}: {error}")


def _agreed(answers: list[T | _Problem]) -> list[T]:
    good: list[T] = []
    for rank, answer in enumerate(answers):
        if isinstance(answer, _Problem):
            raise ValueError(f"the state cannot be saved: rank {rank}: {answer.text}")
        good.append(answer)
    return good


def _signature(planner: DefaultSavePlanner) -> list[object]:
    return [_kind(key, value) for key, value in planner.state_dict.items()]


def _kind(key: str, value: object) -> object:
    if not isinstance(value, torch.Tensor):
        return key
    layout = [str(getattr(value, name, "")) for name in ("placements", "device_mesh")]
    return key, value.shape, value.dtype, value.is_cuda, layout


def _tensor(planner: DefaultSavePlanner, item: WriteItem) -> torch.Tensor:
    tensor = planner.resolve_data(item)
    assert isinstance(tensor, torch.Tensor)
    return tensor


def _shape_and_type(item: WriteItem) -> tuple[tuple[int, ...], torch.dtype]:
    data = item.tensor_data
    assert data is not None
    return tuple(data.chunk.sizes), data.properties.dtype

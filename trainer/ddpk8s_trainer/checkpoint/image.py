"""A rank's share of the tensors as the bytes of one file.

The file is what torch.distributed.checkpoint would write: one `torch.save` archive after the other. Of such
an archive everything but the tensor's data is known from shape and dtype, so it is laid out once, in memory that
is kept; a save then is one memory copy per tensor, and one large write of page-aligned memory.
"""

import contextlib
import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

# Direct I/O wants addresses, offsets and lengths in multiples of the device's block size.
PAGE = 4096
# torch.save aligns data to 64 bytes within an archive; archives start at such offsets as well.
ALIGNMENT = 64


@dataclass(frozen=True)
class Frame:
    """A `torch.save` archive without its data: pieces of bytes at their offsets, and the gap for the data."""

    pieces: tuple[tuple[int, bytes], ...]
    length: int
    data_offset: int


class _Recorder:
    """A file that remembers what was written where, for `torch.save` leaving out the data."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, bytes]] = []
        self.position = self.length = 0

    def write(self, data: Any) -> int:
        self.pieces.append((self.position, bytes(data)))
        self.position += len(self.pieces[-1][1])
        self.length = max(self.length, self.position)
        return len(self.pieces[-1][1])

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = offset + (0, self.position, self.length)[whence]
        return self.position

    def tell(self) -> int:
        return self.position

    def flush(self) -> None:
        pass


def frame_of(shape: tuple[int, ...], dtype: torch.dtype) -> Frame:
    """Lay out the archive of a contiguous CPU tensor.

    Raises:
        RuntimeError: torch left another gap than the data's; its format is not the one known here.
    """
    tensor = torch.empty(shape, dtype=dtype, device="cpu")
    recorder = _Recorder()
    with torch.serialization.skip_data():
        torch.save(tensor, recorder)  # type: ignore[arg-type]
    gaps, end = [], 0
    for offset, piece in sorted(recorder.pieces):
        if offset > end:
            gaps.append((end, offset - end))
        end = max(end, offset + len(piece))
    expected = [tensor.nbytes] if tensor.nbytes else []
    if [size for _, size in gaps] != expected:
        raise RuntimeError(f"torch.save lays out {dtype} tensors of shape {shape} in an unknown way: {gaps}")
    return Frame(tuple(recorder.pieces), recorder.length, gaps[0][0] if gaps else 0)


@dataclass(frozen=True)
class Extent:
    """Where a tensor's archive lies in the file."""

    offset: int
    length: int


class FileImage:
    """Page-aligned memory holding the file; :meth:`stage` puts the tensors' present values in.

    Attributes:
        size: Bytes of the file.
        extents: Where each tensor's archive lies, in the order of the constructor.
    """

    def __init__(self, tensors: list[tuple[tuple[int, ...], torch.dtype]]) -> None:
        frames: dict[tuple[tuple[int, ...], torch.dtype], Frame] = {}
        self._frames: list[Frame] = []
        self._data: list[slice] = []
        self.extents: list[Extent] = []
        end = 0
        for shape, dtype in tensors:
            if (shape, dtype) not in frames:
                frames[shape, dtype] = frame_of(shape, dtype)
            frame = frames[shape, dtype]
            begin = end + frame.data_offset
            self._frames.append(frame)
            self._data.append(slice(begin, begin + torch.Size(shape).numel() * dtype.itemsize))
            self.extents.append(Extent(end, frame.length))
            end = _round_up(end + frame.length, ALIGNMENT)
        self.size = _round_up(end, PAGE)
        self._memory: mmap.mmap | None = None
        self._pinned = False

    @property
    def buffer(self) -> memoryview:
        """The bytes of the file, `size` of them."""
        return memoryview(self._memory) if self._memory is not None else memoryview(b"")

    def stage(self, tensors: list[torch.Tensor]) -> None:
        """Copy the tensors, given in the order of the constructor, into the file.

        Raises:
            MemoryError: There is no memory for the file (first call only).
        """
        if not tensors:
            return
        if self._memory is None:
            self._memory = self._allocate(pin=any(tensor.is_cuda for tensor in tensors))
        whole = np.frombuffer(self._memory, dtype=np.uint8)
        for tensor, place in zip(tensors, self._data, strict=True):
            _copy(tensor, whole[place])
        for device in {tensor.device for tensor in tensors if tensor.is_cuda}:
            # The copies are queued, and the next optimizer step must not overtake them.
            torch.cuda.synchronize(device)

    def _allocate(self, pin: bool) -> mmap.mmap:
        try:
            memory = mmap.mmap(-1, self.size)
        except OSError as error:
            raise MemoryError(f"no memory for {self.size} bytes of staged tensors") from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without huge pages
                memory.madvise(mmap.MADV_HUGEPAGE)
        whole = np.frombuffer(memory, dtype=np.uint8)
        for extent, frame in zip(self.extents, self._frames, strict=True):
            for offset, piece in frame.pieces:
                begin = extent.offset + offset
                whole[begin : begin + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
        if pin:
            # Copies from the GPU are several times faster into pinned memory. Without it they work as well.
            code = _cudart().cudaHostRegister(whole.ctypes.data, self.size, 0)
            self._pinned = int(code) == 0
        return memory

    def release(self) -> None:
        """Give the memory back."""
        if self._memory is not None and self._pinned:
            _cudart().cudaHostUnregister(np.frombuffer(self._memory, dtype=np.uint8).ctypes.data)
        self._memory, self._pinned = None, False


def _copy(tensor: torch.Tensor, target: npt.NDArray[np.uint8]) -> None:
    if tensor.numel() == 0:
        return
    source = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    if source.device.type == "cpu":
        np.copyto(target, source.numpy())  # a third faster than Tensor.copy_
    else:
        torch.from_numpy(target).copy_(source, non_blocking=source.is_cuda)


def _cudart() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple

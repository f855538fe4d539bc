"""Tensors as bytes of a file, and bytes on disk."""

import errno
import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import xxhash

from ddpk8s_trainer.checkpoint.image import PAGE, FileImage
from ddpk8s_trainer.checkpoint.writing import PIECE, hash_file, write_file

TENSORS = [
    torch.randn(3, 5),
    torch.tensor(2.5, dtype=torch.float64),
    torch.randn(11).bfloat16(),
    torch.randn(4, 1).half(),
    torch.arange(13, dtype=torch.int64),
    torch.arange(9, dtype=torch.uint8),
    torch.tensor([True, False, True]),
    torch.randn(3).to(torch.float8_e4m3fn),
    torch.randn(2, 2, dtype=torch.complex64),
    torch.empty(0, 7),
    torch.randn(6, 4).t(),
    torch.nn.Parameter(torch.randn(2)),
]


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def test_every_type_of_tensor_is_read_back_by_torch() -> None:
    image = FileImage([(tuple(tensor.shape), tensor.dtype) for tensor in TENSORS])
    assert image.size % PAGE == 0
    image.stage([torch.zeros_like(tensor) for tensor in TENSORS])
    image.stage(TENSORS)  # replaces all of it
    for tensor, extent in zip(TENSORS, image.extents, strict=True):
        archive = bytes(image.buffer[extent.offset : extent.offset + extent.length])
        loaded = torch.load(io.BytesIO(archive), weights_only=True)
        assert (loaded.dtype, loaded.shape) == (tensor.dtype, tensor.shape)
        assert bits(loaded).equal(bits(tensor))
    image.release()
    assert len(image.buffer) == 0


def test_image_without_tensors_has_no_bytes() -> None:
    image = FileImage([])
    image.stage([])
    assert (image.size, len(image.buffer)) == (0, 0)


@pytest.fixture
def without_direct_io(tmp_path: Path) -> Iterator[Path]:
    """A file system that refuses direct I/O."""
    path = tmp_path / "ramfs"
    path.mkdir()
    mount = ["mount", "-t", "ramfs", "ramfs", str(path)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")
    try:
        with pytest.raises(OSError, match="Invalid argument"):
            os.open(path / "probe", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def pages(size: int) -> memoryview:
    """Page-aligned random bytes."""
    image = FileImage([((size,), torch.uint8)])
    image.stage([torch.randint(0, 256, (size,), dtype=torch.uint8)])
    return image.buffer


@pytest.mark.parametrize("size", [1, 5 * PAGE, 2 * PIECE + 17])
def test_direct_write_leaves_exactly_the_bytes(tmp_path: Path, size: int) -> None:
    data, path = pages(size), tmp_path / "file"
    entry = write_file(path, data, direct=True)
    assert path.read_bytes() == data
    assert (entry.size, entry.hash) == (len(data), xxhash.xxh3_128_hexdigest(data))
    assert hash_file(path) == entry.hash


def test_file_system_without_direct_io_is_written_all_the_same(without_direct_io: Path) -> None:
    data, path = pages(3 * PAGE), without_direct_io / "file"
    assert write_file(path, data, direct=True).size == len(data)
    assert path.read_bytes() == data


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("there")
    with pytest.raises(FileExistsError) as caught:
        write_file(path, b"new")
    assert (caught.value.filename, caught.value.errno) == (str(path), errno.EEXIST)
    assert path.read_text() == "there"

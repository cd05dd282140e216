"""Tensors of a .npy, .npz or .safetensors file: read when they are asked for, and never whole where they are large.

FP16, FP32 and FP64 are read where they lie on disk. Everything else (BF16, FP8, integers, members of archives, arrays
by columns) is decoded piece by piece into FP32, or FP64 for integers of more than 16 bits: in memory where that is
small, else in a scratch file that the system deletes.
"""

import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.user_file import MAX_BYTES
from orrery.numerics.codec.rounding import decode
from orrery.numerics.names import get_element
from orrery.scenario.safetensors import MAX_AXES, Stored, read_header

Array = NDArray[Any]

MAX_PACKING_RATIO = 50
"""Weights hardly pack: zip makes some 1.1 of them, and 20 of a matrix that is nine tenths zeros."""

SUFFIXES = (".npy", ".npz", ".safetensors")

PLAIN = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
}
CODED = {
    "BF16": ("<u2", "bf16"),
    "F8_E4M3": ("u1", "e4m3fn"),
    "F8_E5M2": ("u1", "e5m2"),
    "F8_E4M3FNUZ": ("u1", "e4m3fnuz"),
    "F8_E5M2FNUZ": ("u1", "e5m2fnuz"),
    "F8_E8M0": ("u1", "ue8m0"),
}
"""dtype of a .safetensors file -> how its codes are stored, and the element that they are of."""

DAMAGED = (
    ValueError,
    EOFError,
    OverflowError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    RuntimeError,
    OSError,
)
"""Exceptions that readers of archives and array headers raise on damaged files."""

IN_MEMORY_BYTES = 1 << 28
"""A decoded tensor larger than this is kept in a scratch file."""

PIECE_ELEMENTS = 1 << 22
"""Decoded at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One tensor of a file; ``read`` gives contiguous numbers, or ScenarioError with why it cannot."""

    name: str
    dtype: str  # as its file says
    shape: tuple[int, ...]
    read: Callable[[], Array]

    @property
    def num_elements(self) -> int:
        """The product of its shape."""
        return prod(self.shape)


def tensors_in(path: Path) -> tuple[Tensor, ...]:
    """Every tensor of a file, in its order. ScenarioError for what is no such file, or truncated."""
    readers = {".npy": _of_npy, ".npz": _of_npz, ".safetensors": _of_safetensors}
    suffix = path.suffix.casefold()
    if path.is_dir():
        raise ScenarioError(f"{path}: is a folder; name the files in it, such as {path}/*.safetensors.")
    if suffix not in readers:
        raise ScenarioError(f"{path}: tensors are read from files that end in {', '.join(SUFFIXES)}.")
    try:
        found = tuple(readers[suffix](path))
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror or error}; give a readable file.") from None
    if not found:
        raise ScenarioError(f"{path}: holds no tensor.")
    return found


# ---- .safetensors


def _of_safetensors(path: Path) -> Iterator[Tensor]:
    for stored in read_header(path):
        yield Tensor(
            name=stored.name,
            dtype=stored.dtype,
            shape=stored.shape,
            read=lambda stored=stored: _stored_numbers(path, stored),
        )


def _stored_numbers(path: Path, stored: Stored) -> Array:
    if stored.dtype in PLAIN:
        return numbers_of(_mapped(path, np.dtype(PLAIN[stored.dtype]), stored.start, stored.shape))
    if stored.dtype not in CODED:
        raise ScenarioError(f"{stored.dtype} is not read; known are {', '.join((*PLAIN, *CODED))}")
    dtype, name = CODED[stored.dtype]
    element, codes = get_element(name), _mapped(path, np.dtype(dtype), stored.start, stored.shape)
    return _by_pieces(codes, np.dtype(np.float32), lambda piece: decode(piece, element))


# ---- .npy and .npz


@dataclass(frozen=True, slots=True, kw_only=True)
class _Npy:
    """An array's header, and the offset of its numbers."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_by_columns: bool
    start: int

    @property
    def end(self) -> int:
        return self.start + prod(self.shape) * self.dtype.itemsize


def _of_npy(path: Path) -> Iterator[Tensor]:
    with path.open("rb") as file:
        header = _npy_header(file, str(path), path.stat().st_size)
    yield Tensor(name=path.stem, dtype=str(header.dtype), shape=header.shape, read=lambda: _npy_numbers(path, header))


def _of_npz(path: Path) -> Iterator[Tensor]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
            headers = [_member_header(archive, member, path) for member in members]
    except (FileNotFoundError, ScenarioError):
        raise
    except DAMAGED as error:
        raise ScenarioError(f"{path}: is no .npz archive: {_why(error)}.") from None
    for member, header in zip(members, headers, strict=True):
        yield Tensor(
            name=member.filename.removesuffix(".npy"),
            dtype=str(header.dtype),
            shape=header.shape,
            read=lambda member=member, header=header: _member_numbers(path, member, header),
        )


def _member_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> _Npy:
    if member.file_size > max(MAX_BYTES, MAX_PACKING_RATIO * member.compress_size):
        raise ScenarioError(
            f"{path}: {member.filename} unpacks from {member.compress_size:,} to {member.file_size:,} bytes, which no "
            "weights do; save the array as .npy."
        )
    with archive.open(member) as file:
        return _npy_header(file, f"{path}: {member.filename}", member.file_size)


def _npy_header(file: IO[bytes], where: str, size: int) -> _Npy:
    try:
        version = npy.read_magic(cast(Any, file))
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version[0]}.{version[1]} holds records")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_by_columns, dtype = read(cast(Any, file))
    except DAMAGED as error:
        raise ScenarioError(f"{where}: is no .npy array: {_why(error)}.") from None
    header = _Npy(dtype=dtype, shape=shape, is_by_columns=is_by_columns, start=file.tell())
    if (
        any(type(n) is not int or n < 0 for n in shape)
        or len(shape) > MAX_AXES
        or (not dtype.hasobject and header.end > size)
    ):
        raise ScenarioError(f"{where}: has {size} bytes where a shape of {shape} in {dtype} ends at {header.end}.")
    return header


def _npy_numbers(path: Path, header: _Npy) -> Array:
    _check_kind(header.dtype)
    array = _mapped(path, header.dtype, header.start, header.shape, "F" if header.is_by_columns else "C")
    return numbers_of(array)


def _member_numbers(path: Path, member: zipfile.ZipInfo, header: _Npy) -> Array:
    """A member, unpacked piece by piece."""
    _check_kind(header.dtype)
    flat = _room((prod(header.shape),), header.dtype)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            file.seek(header.start)
            for start in range(0, flat.size, PIECE_ELEMENTS):
                part = flat[start : start + PIECE_ELEMENTS]
                part[:] = np.frombuffer(file.read(part.nbytes), dtype=header.dtype)
    except DAMAGED as error:
        raise ScenarioError(f"the archive is damaged: {_why(error)}") from None
    return numbers_of(flat.reshape(header.shape, order="F" if header.is_by_columns else "C"))


def _why(error: Exception) -> str:
    return (str(error).splitlines() or ["it ends too early"])[0]


def _check_kind(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "fiu" or dtype.itemsize > 8:
        what = "Python objects, which are never unpacked" if dtype.hasobject else f"{dtype}, which are no real numbers"
        raise ScenarioError(f"it holds {what}; store floats or integers of up to 64 bits")


# ---- from what lies on disk to numbers


def _mapped(path: Path, dtype: np.dtype[Any], start: int, shape: tuple[int, ...], order: Any = "C") -> Array:
    """An array where it lies on disk."""
    if not prod(shape):
        return np.empty(shape, dtype=dtype)
    return np.memmap(path, dtype, "r", start, shape or (1,), order=order).reshape(shape)


def numbers_of(array: Array) -> Array:
    """Contiguous floats in the machine's byte order; the array itself where it is that already."""
    wide = array.dtype.kind in "iu" and array.dtype.itemsize > 2
    target_dtype = (
        np.dtype(np.float64 if wide else np.float32) if array.dtype.kind in "iu" else array.dtype.newbyteorder("=")
    )
    if array.flags.c_contiguous and array.dtype == target_dtype:
        return array
    return _by_pieces(array, target_dtype, lambda piece: piece)


def _by_pieces(array: Array, dtype: np.dtype[Any], change: Callable[[Array], Array]) -> Array:
    """The whole array after ``change``, piece by piece along its first axis (all at once along the others)."""
    out = _room(array.shape, dtype)
    if array.flags.c_contiguous:
        array, target = array.reshape(-1), out.reshape(-1)
    else:
        target = out
    step = max(1, PIECE_ELEMENTS // max(1, prod(array.shape[1:])))
    for start in range(0, len(array), step):
        part = slice(start, start + step)
        target[part] = change(np.ascontiguousarray(array[part]))
    return out


def _room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Room for a tensor: in memory where it is small, else in a file without a name."""
    if prod(shape) * dtype.itemsize <= IN_MEMORY_BYTES:
        return np.empty(shape, dtype=dtype)
    with TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", 0, shape)

"""The header of a .safetensors file, checked: where each tensor lies, and in which numbers.

Eight bytes, little-endian, give the header's length; the header is a JSON object of name -> dtype, shape and offsets
from its own end; the rest is the tensors, one after the other without overlap or hole (README of the format).
"""

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, cast

from orrery.base.errors import ScenarioError
from orrery.base.user_text import parsed_json

LENGTH_BYTES = 8

MAX_HEADER_BYTES = 100_000_000
"""Limit of the format's own reader."""

MAX_AXES = 32

BITS = {
    "F64": 64,
    "F32": 32,
    "F16": 16,
    "BF16": 16,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "F8_E8M0": 8,
    "I64": 64,
    "I32": 32,
    "I16": 16,
    "I8": 8,
    "U64": 64,
    "U32": 32,
    "U16": 16,
    "U8": 8,
    "BOOL": 8,
}
"""Bits of one element, by dtype; a dtype that is not here is left to whoever reads the tensor to decline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One tensor as the header states it; ``start`` and ``end`` are places in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def read_header(path: Path) -> tuple[Stored, ...]:
    """Every tensor of a file, in the order of the header; ScenarioError says what is wrong with it."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            if size < LENGTH_BYTES:
                raise _wrong(path, f"it has {size} bytes, and the length of its header alone takes {LENGTH_BYTES}")
            if not 2 <= length <= min(MAX_HEADER_BYTES, size - LENGTH_BYTES):
                raise _wrong(path, f"its header is said to have {length} bytes, of {size - LENGTH_BYTES} that follow")
            text = file.read(length)
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}; give a .safetensors file.") from None
    begin = LENGTH_BYTES + length
    entries = _object(path, text)
    _check_metadata(path, entries.pop("__metadata__", {}))
    found = tuple(_stored(path, name, entry, begin, size) for name, entry in entries.items())
    _check_places(path, found, begin, size)
    return found


def _object(path: Path, text: bytes) -> dict[str, Any]:
    """The header as an object whose keys are all different."""
    try:
        found = parsed_json(text.decode("utf-8"), is_unique=True)
    except ValueError as error:
        raise _wrong(path, f"its header is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _wrong(path, f"its header is a JSON {type(found).__name__}, not an object")
    return cast(dict[str, Any], found)


def _check_metadata(path: Path, metadata: Any) -> None:
    is_texts = isinstance(metadata, dict) and all(
        isinstance(value, str) for value in cast(dict[str, Any], metadata).values()
    )
    if not is_texts:
        raise _wrong(path, "its __metadata__ is no object of texts")


def _stored(path: Path, name: str, entry: Any, begin: int, size: int) -> Stored:
    """One entry; every field must be there, of its type, and within the file."""
    if not isinstance(entry, dict) or (keys := set(cast(dict[str, Any], entry))) != {"dtype", "shape", "data_offsets"}:
        got = ", ".join(sorted(keys)) if isinstance(entry, dict) else repr(entry)[:60]  # pyright: ignore[reportPossiblyUnboundVariable]
        raise _wrong(path, f"{name!r} has {got}; an entry has dtype, shape and data_offsets")
    fields = cast(dict[str, Any], entry)
    dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if not isinstance(dtype, str):
        raise _wrong(path, f"the dtype of {name!r} is {dtype!r}, not a text such as BF16")
    if not _is_counts(shape) or len(shape) > MAX_AXES:
        raise _wrong(path, f"the shape of {name!r} is {repr(shape)[:60]}, not up to {MAX_AXES} whole numbers from 0")
    if not _is_counts(offsets) or len(offsets) != 2 or not offsets[0] <= offsets[1] <= size - begin:
        raise _wrong(path, f"{name!r} lies at {repr(offsets)[:60]} of {size - begin} bytes of tensors")
    if dtype in BITS and prod(shape) * BITS[dtype] != (offsets[1] - offsets[0]) * 8:
        raise _wrong(path, f"{name!r} has {offsets[1] - offsets[0]} bytes for a shape of {shape} in {dtype}")
    return Stored(name=name, dtype=dtype, shape=tuple(shape), start=begin + offsets[0], end=begin + offsets[1])


def _is_counts(value: Any) -> bool:
    """Whether it is a list of whole numbers from 0; JSON's truth values are none."""
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in cast(list[Any], value))


def _check_places(path: Path, found: tuple[Stored, ...], begin: int, size: int) -> None:
    """Tensors lie one after the other and fill the file."""
    at, before = begin, "the header"
    for tensor in sorted(found, key=lambda t: (t.start, t.end)):
        if tensor.start != at:
            what = f"{at - tensor.start} bytes are shared" if tensor.start < at else f"{tensor.start - at} bytes lie"
            raise _wrong(path, f"{what} between {before} and {tensor.name!r}")
        at, before = tensor.end, repr(tensor.name)
    if at != size:
        raise _wrong(path, f"{size - at} bytes follow {before}")


def _wrong(path: Path, what: str) -> ScenarioError:
    return ScenarioError(f"{path}: is no .safetensors file that can be trusted: {what}.")

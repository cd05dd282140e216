"""Functions that are compiled ahead of time, and the array types that they are written in.

``@compiled`` marks a function of an engine room (``_kernel.py``). Where the extension of its room was built from the
sources as they stand, the name stands for the compiled function; where it was not, or with ``ORRERY_PLAIN=1``, the same
source runs as plain Python. ``tools/compile`` translates: it reads the annotations, so every argument has one.
"""

import os
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = Floats2 = Floats3 = Floats4 = Floats5 = NDArray[np.float64]
    Ints = Ints2 = Ints3 = NDArray[np.int64]
    Singles = Singles2 = NDArray[np.float32]
    Words = Words2 = NDArray[np.int32]
    Bytes = Bytes2 = NDArray[np.int8]
    Flags = NDArray[np.bool_]
    Numbers = NDArray[Any]
    """FP32 or FP64; all arguments of this type agree."""
    ShortCodes = Codes = LongCodes = NDArray[Any]
    """Unsigned integers of 8 bits up to 16, up to 32 or up to 64; all arguments of one of these types agree."""
    Entries = NDArray[Any]
    """FP32, FP64, or unsigned integers of 8 or 16 bits; all arguments of this type agree."""
    single = np.float32
    word = np.int32
else:
    Floats = Floats2 = Floats3 = Floats4 = Floats5 = Any
    Ints = Ints2 = Ints3 = Any
    Singles = Singles2 = Words = Words2 = Bytes = Bytes2 = Flags = Numbers = ShortCodes = Codes = LongCodes = (
        Entries
    ) = single = word = Any

R = TypeVar("R")
PLAIN = "ORRERY_PLAIN"
"""The environment's variable that keeps everything plain Python."""


@cache
def extension_of(room: str) -> ModuleType | None:
    """The extension of ``orrery.<room>`` for this processor; None where it was not built, or from other sources."""
    if os.environ.get(PLAIN):
        return None
    extension = _current(room, "_compiled")
    return _current(room, "_compiled_wide") or extension if extension and extension.HAS_WIDE else extension


def _current(room: str, name: str) -> ModuleType | None:
    """An extension, if it was built from the sources as they stand."""
    try:
        extension = import_module(f"orrery.{room}.{name}")
    except ImportError:
        return None
    house = Path(__file__).parents[1]
    is_current = all(
        sha256((house / path).read_bytes()).hexdigest() == digest for path, digest in extension.SOURCES.items()
    )
    return extension if is_current else None


def compiled(function: Callable[..., R]) -> Callable[..., R]:
    """``function`` as compiled ahead of time, or itself."""
    extension = extension_of(function.__module__.split(".")[1])
    return function if extension is None else extension.FUNCTIONS[function.__module__, function.__name__]


def bits_of_single(x: Any) -> Any:
    """The bits of an FP32 number as a whole number of 32 bits."""
    return np.float32(x).view(np.int32)


def single_of_bits(bits: Any) -> Any:
    """The FP32 number of bits."""
    return np.int32(bits).view(np.float32)


def bits_of_float(x: Any) -> Any:
    """The bits of an FP64 number as a whole number of 64 bits."""
    return np.float64(x).view(np.int64)


def float_of_bits(bits: Any) -> Any:
    """The FP64 number of bits."""
    return np.int64(bits).view(np.float64)

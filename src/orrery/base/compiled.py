"""Functions that are compiled ahead of time, and the array types that they are written in.

``@compiled`` marks a function of an engine room (``_kernel.py``). Where the extension of its room was built from the
sources as they stand, the name stands for the compiled function; where it was not, or with ``ORRERY_PLAIN=1``, the same
source runs as plain Python. ``tools/compile`` translates: it reads the annotations, so every argument has one.
"""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

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

_sources: dict[Callable[..., Any], Callable[..., Any]] = {}


@cache
def extension_of(room: str) -> ModuleType | None:
    """The extension of ``orrery.<room>`` for this processor; None where it was not built, or from other sources."""
    if os.environ.get(PLAIN):
        return None
    try:
        extension = import_module(f"orrery.{room}._compiled")
    except ImportError:
        return _say_plain("was not built for this Python")
    if extension.HAS_WIDE:  # what the processor has; most rooms have no second form
        with suppress(ImportError):
            extension = import_module(f"orrery.{room}._compiled_wide")
    house = Path(__file__).parents[1]
    for path, digest in extension.SOURCES.items():
        if sha256((house / path).read_bytes()).hexdigest() != digest:
            return _say_plain(f"was built before {path} changed")
    return extension


@cache
def _say_plain(why: str) -> None:
    """Tell once that everything will take its time."""
    logging.getLogger("orrery").warning(
        "note: orrery runs as plain Python, some 100 times slower: its compiled part %s. Install a wheel, or a C "
        "compiler and then orrery again; in a checkout: make compile.",
        why,
    )


def compiled(function: Callable[..., R]) -> Callable[..., R]:
    """``function`` as compiled ahead of time, or itself."""
    extension = extension_of(function.__module__.split(".")[1])
    if extension is None:
        return function
    found = extension.FUNCTIONS[function.__module__, function.__name__]
    _sources[found] = function
    return found


def source_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The plain Python of a compiled function; any other function itself."""
    return _sources.get(function, function)


def converted(value: Any) -> Any:
    """A named tuple of tables as compiled functions hold it: to be made once where they are called often.

    It sees the same arrays; plain Python goes on with the tuple itself.
    """
    kind = cast(type[Any], type(value))
    extension = extension_of(kind.__module__.split(".")[1])
    return value if extension is None else extension.CLASSES[kind.__module__, kind.__name__](value)


def callable_rule(rule: Callable[..., Any], loop: str, kind: str, address: int = 0) -> Callable[..., Any]:
    """A technique's rule as the compiled functions of the module ``loop`` call it, ``kind`` being its type there.

    The house's rules are compiled with the loop; others are called through Python, or at ``address``, where a function
    of that type stands whose arrays are each a pointer and a size.
    """
    extension = extension_of(loop.split(".")[1])
    if extension is None:
        return rule
    own: int = extension.RULES.get((rule.__module__, rule.__name__), address)
    return extension.CLASSES[loop, kind](rule, own)


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

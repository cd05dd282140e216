"""NVIDIA's driver through ctypes: what loads, launches, captures, copies and times."""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from orrery.base.errors import OrreryError

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
POINTER = ctypes.c_uint64
SIZE = ctypes.c_size_t
WORD, SINGLE, DOUBLE = ctypes.c_int, ctypes.c_float, ctypes.c_double


class CudaError(OrreryError):
    """A call of the driver or of the compiler that failed."""


def driver_library() -> Any:
    """NVIDIA's driver; CudaError where it is not installed."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        raise CudaError(f"NVIDIA's driver ({LIBRARY}) is not installed here: no CUDA GPU can be measured.") from None


class Driver:
    """The driver's functions by their names: a result other than 0 raises CudaError."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.call("cuInit", ctypes.c_uint(0))

    def call(self, name: str, *arguments: Any) -> None:
        """Calls one function; every argument is a ctypes value, so that none is cut to 32 bits."""
        self.caller(name, *arguments)()

    def caller(self, name: str, *arguments: Any) -> Callable[[], None]:
        """``call`` with its function looked up: for calls that are timed themselves."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise CudaError(f"This driver has no {name}: it is older than the program.") from None

        def called() -> None:
            if code := function(*arguments):
                raise CudaError(f"{name} failed: {self._words(code)}.")

        return called

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """A handle that the function writes to its first argument."""
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def _words(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(ctypes.c_int(code), ctypes.byref(text))
        return f"{(text.value or b'unknown error').decode()} ({code})"


class _AttributeValue(ctypes.Union):
    _fields_ = [("number", ctypes.c_int), ("pad", ctypes.c_char * 64)]


class LaunchAttribute(ctypes.Structure):
    """``CUlaunchAttribute``: a number that says which, padded to 8 bytes, and 64 bytes of value."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", _AttributeValue)]


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig``."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("num_attributes", ctypes.c_uint),
    ]

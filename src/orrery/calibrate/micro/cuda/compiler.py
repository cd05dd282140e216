"""CUDA C++ compiled for the GPU at hand by NVRTC, which comes with PyTorch and with every CUDA toolkit."""

import ctypes
import os
import re
import shutil
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path
from typing import Any

from orrery.calibrate.micro.cuda.driver import CudaError

PROGRAMS = Path(__file__).parent / "programs"
NAMES = re.compile(r"libnvrtc\.so\.\d+|libnvrtc\.so|nvrtc64_\d+_0\.dll")


def compiler_library() -> Any:
    """NVRTC, the newest that is found; CudaError where there is none."""
    for path in (*_files(), find_library("nvrtc") or "libnvrtc.so"):
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    raise CudaError(
        "NVIDIA's runtime compiler (NVRTC) is not found: pip install nvidia-cuda-nvrtc (PyTorch for CUDA brings it), "
        "or set CUDA_HOME to a CUDA toolkit."
    )


def _files() -> list[Path]:
    """Libraries beside Python's packages and in toolkits, the newest version first."""
    found = {path for folder in _folders() for path in folder.glob("*nvrtc*") if NAMES.fullmatch(path.name)}
    return sorted(found, key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)], reverse=True)


def _folders() -> Iterator[Path]:
    for place in sys.path:
        yield from (Path(place) / "nvidia").glob("*/lib")
        yield from (Path(place) / "nvidia").glob("*/bin")
    nvcc = shutil.which("nvcc")
    for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), nvcc and Path(nvcc).resolve().parents[1]):
        if root:
            yield from (Path(root) / "lib64", Path(root) / "bin")


def architecture(capability: tuple[int, int]) -> str:
    """The compiler's word for a compute capability: with the features of that one alone from Hopper on."""
    major, minor = capability
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def compiled(text: str, arch: str, library: Any | None = None) -> bytes:
    """The machine code (cubin) of CUDA C++; CudaError with the compiler's first complaint where it is wrong."""
    nvrtc = library or compiler_library()
    program = ctypes.c_void_p()
    _checked(nvrtc, "nvrtcCreateProgram", ctypes.byref(program), text.encode(), b"microbenchmark.cu", 0, None, None)
    try:
        options = (ctypes.c_char_p * 2)(f"--gpu-architecture={arch}".encode(), b"--std=c++17")
        if nvrtc.nvrtcCompileProgram(program, 2, options):
            raise CudaError(f"NVRTC refused a program for {arch}: {_log(nvrtc, program)}")
        return _text(nvrtc, program, "CUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def source(name: str) -> str:
    """The text of a program of this folder."""
    return (PROGRAMS / f"{name}.cu").read_text(encoding="utf-8")


def _log(nvrtc: Any, program: ctypes.c_void_p) -> str:
    lines = _text(nvrtc, program, "ProgramLog").decode(errors="replace").strip("\0\n ").splitlines()
    return next((line for line in lines if "error" in line), lines[0] if lines else "without a word")


def _text(nvrtc: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _checked(nvrtc, f"nvrtcGet{what}Size", program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    _checked(nvrtc, f"nvrtcGet{what}", program, text)
    return text.raw


def _checked(nvrtc: Any, name: str, *arguments: Any) -> None:
    if code := int(getattr(nvrtc, name)(*arguments)):
        raise CudaError(f"{name} failed with code {code}.")

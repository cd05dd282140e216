"""A driver of CUDA that is played: it keeps what was launched, and answers with the times that a test wants."""

import ctypes
from typing import Any

ATTRIBUTES = {75: 9, 76: 0, 16: 132, 38: 50 * 2**20}
EVENT_MS = 2.0
CYCLES = 98_304


class PlayedDriver:
    """An H100: every event lies ``EVENT_MS`` after the one before, every kernel counts ``CYCLES`` cycles."""

    def __init__(self, failing: str = "", capability: tuple[int, int] = (9, 0), num_gpus: int = 1) -> None:
        self.launches: list[tuple[str, tuple[Any, ...]]] = []
        self._failing, self._capability, self._num_gpus = failing, capability, num_gpus
        self._names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        return lambda *arguments: self._called(name, arguments)

    def _called(self, name: str, arguments: tuple[Any, ...]) -> int:
        if name == self._failing:
            return 700
        first = getattr(arguments[0], "_obj", None)
        if isinstance(first, ctypes.c_void_p):
            first.value = 4096
        match name:
            case "cuGetErrorName":
                arguments[1]._obj.value = b"CUDA_ERROR_ILLEGAL_ADDRESS"
            case "cuDeviceGetCount":
                first.value = self._num_gpus
            case "cuDeviceGetName":
                arguments[0].value = b"NVIDIA H100 80GB HBM3"
            case "cuDeviceGetAttribute":
                major, minor = self._capability
                first.value = (ATTRIBUTES | {75: major, 76: minor})[arguments[1].value]
            case "cuMemGetInfo_v2":
                first.value = 80 * 10**9
            case "cuEventElapsedTime":
                first.value = EVENT_MS
            case "cuMemAlloc_v2":
                first.value = 2**33
            case "cuModuleGetFunction":
                self._names.append(arguments[2].decode())
                first.value = len(self._names)
            case "cuLaunchKernel":
                self._launched(arguments[0], arguments[-2])
            case "cuLaunchKernelEx":
                self._launched(arguments[1], arguments[2])
            case "cuMemcpyDtoH_v2" if arguments[2].value <= 4096:
                words = arguments[2].value // 8
                (ctypes.c_int64 * words).from_address(arguments[0].value)[:] = [CYCLES] * words
            case _:
                pass
        return 0

    def _launched(self, kernel: ctypes.c_void_p, arguments: Any) -> None:
        self.launches.append((self._names[(kernel.value or 1) - 1], tuple(arguments.values)))

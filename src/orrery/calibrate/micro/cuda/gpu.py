"""One GPU: its memory, its stream, its events, and programs that are launched on it."""

import ctypes
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from orrery.calibrate.micro.cuda.compiler import architecture, compiled
from orrery.calibrate.micro.cuda.driver import (
    POINTER,
    SIZE,
    WORD,
    Driver,
    LaunchAttribute,
    LaunchConfig,
    driver_library,
)

Kernel = ctypes.c_void_p
MAX_SHARED_ATTRIBUTE = 8
"""``CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES``."""
EARLY_ATTRIBUTE = 6
"""``CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION``."""
ATTRIBUTES: Mapping[str, int] = {
    "major": 75,
    "minor": 76,
    "processors": 16,
    "l2_bytes": 38,
}
"""``CUdevice_attribute`` of what is asked."""


class Gpu:
    """The device of number ``index`` in its primary context, and one stream on it."""

    def __init__(self, index: int = 0, library: Any | None = None) -> None:
        self.driver = Driver(library or driver_library())
        self._device = ctypes.c_int()
        self.driver.call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(index))
        self.driver.call("cuCtxSetCurrent", self.driver.made("cuDevicePrimaryCtxRetain", self._device))
        self.stream = self.driver.made("cuStreamCreate", ctypes.c_uint(1))
        self._events = [self.driver.made("cuEventCreate", ctypes.c_uint(0)) for _ in range(2)]
        self._modules: dict[str, ctypes.c_void_p] = {}

    @property
    def name(self) -> str:
        """As the driver calls it."""
        text = ctypes.create_string_buffer(256)
        self.driver.call("cuDeviceGetName", text, ctypes.c_int(256), self._device)
        return text.value.decode()

    def attribute(self, name: str) -> int:
        """One of ``ATTRIBUTES``."""
        found = ctypes.c_int()
        self.driver.call("cuDeviceGetAttribute", ctypes.byref(found), ctypes.c_int(ATTRIBUTES[name]), self._device)
        return found.value

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability: (9, 0) is Hopper's."""
        return self.attribute("major"), self.attribute("minor")

    @property
    def num_processors(self) -> int:
        """Streaming multiprocessors."""
        return self.attribute("processors")

    def free_bytes(self) -> int:
        """Memory that nobody has taken."""
        free, total = SIZE(), SIZE()
        self.driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def kernel(self, text: str, name: str, shared_bytes: int = 0) -> Kernel:
        """The kernel called ``name`` of a program, which is compiled once."""
        if text not in self._modules:
            image = compiled(text, architecture(self.capability))
            self._modules[text] = self.driver.made("cuModuleLoadData", image)
        found = self.driver.made("cuModuleGetFunction", self._modules[text], name.encode())
        if shared_bytes:
            self.driver.call(
                "cuFuncSetAttribute", found, ctypes.c_int(MAX_SHARED_ATTRIBUTE), ctypes.c_int(shared_bytes)
            )
        return found

    def launch(self, kernel: Kernel, grid: int, block: int, *arguments: Any, shared_bytes: int = 0) -> None:
        """``grid`` blocks of ``block`` threads; Python's whole numbers are the kernel's ``int``."""
        self.launcher(kernel, grid, block, *arguments, shared_bytes=shared_bytes)()

    def launcher(
        self, kernel: Kernel, grid: int, block: int, *arguments: Any, shared_bytes: int = 0
    ) -> Callable[[], None]:
        """A launch with everything in place, so that the host's own work is the least that it can be."""
        one, shared = ctypes.c_uint(1), ctypes.c_uint(shared_bytes)
        sizes = (ctypes.c_uint(grid), one, one, ctypes.c_uint(block), one, one, shared)
        return self.driver.caller("cuLaunchKernel", kernel, *sizes, self.stream, _Arguments(arguments), None)

    def early_launcher(self, kernel: Kernel, grid: int, block: int, *arguments: Any) -> Callable[[], None]:
        """A launch as a programmatic dependent: the kernel may begin before its predecessor has ended."""
        attribute = LaunchAttribute(id=EARLY_ATTRIBUTE)
        attribute.value.number = 1
        config = LaunchConfig(
            grid=(grid, 1, 1),
            block=(block, 1, 1),
            stream=self.stream,
            attributes=ctypes.pointer(attribute),
            num_attributes=1,
        )
        return self.driver.caller("cuLaunchKernelEx", ctypes.pointer(config), kernel, _Arguments(arguments), None)

    @contextmanager
    def buffer(self, size_bytes: int) -> Generator[POINTER]:
        """Memory of the device, zeros; CudaError where that much is not free."""
        found = POINTER()
        self.driver.call("cuMemAlloc_v2", ctypes.byref(found), SIZE(size_bytes))
        try:
            self.fill(found, size_bytes)
            yield found
        finally:
            self.driver.call("cuMemFree_v2", found)

    def fill(self, buffer: POINTER, size_bytes: int) -> None:
        """Zeros to all of a buffer, in stream order."""
        self.driver.call("cuMemsetD8Async", buffer, ctypes.c_ubyte(0), SIZE(size_bytes), self.stream)

    def write(self, buffer: POINTER, array: np.ndarray[Any, Any], offset_bytes: int = 0) -> None:
        """A host array to a buffer."""
        there = POINTER(buffer.value + offset_bytes)
        self.driver.call("cuMemcpyHtoD_v2", there, ctypes.c_void_p(array.ctypes.data), SIZE(array.nbytes))

    def read(self, buffer: POINTER, count: int) -> list[int]:
        """The first ``count`` 64-bit whole numbers of a buffer, once the stream is done."""
        self.synchronise()
        array = np.empty(count, dtype=np.int64)
        self.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), buffer, SIZE(array.nbytes))
        return array.tolist()

    def synchronise(self) -> None:
        """Waits until the stream is done."""
        self.driver.call("cuStreamSynchronize", self.stream)

    def elapsed_s(self, work: Callable[[], object]) -> float:
        """Seconds of the device between events before and after ``work``."""
        first, last = self._events
        self.driver.call("cuEventRecord", first, self.stream)
        work()
        self.driver.call("cuEventRecord", last, self.stream)
        self.driver.call("cuEventSynchronize", last)
        took_ms = ctypes.c_float()
        self.driver.call("cuEventElapsedTime", ctypes.byref(took_ms), first, last)
        return took_ms.value * 1e-3

    def captured(self, work: Callable[[], object]) -> Callable[[], None]:
        """The launches of ``work`` as a CUDA graph; a call launches it."""
        self.driver.call("cuStreamBeginCapture_v2", self.stream, ctypes.c_int(2))
        graph = ctypes.c_void_p()
        try:
            work()
        finally:
            self.driver.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        run = self.driver.made("cuGraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
        return self.driver.caller("cuGraphLaunch", run, self.stream)


class _Arguments:
    """Arguments as the driver wants them: an array of pointers to each, which this keeps alive."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.values = [WORD(argument) if isinstance(argument, int) else argument for argument in arguments]
        pointers = [ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in self.values]
        self._as_parameter_ = (ctypes.c_void_p * max(len(pointers), 1))(*pointers)


def opened(index: int) -> tuple[Gpu, str]:
    """The GPU of that number, and its name."""
    gpu = Gpu(index)
    return gpu, gpu.name

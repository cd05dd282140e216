"""Copies between host and device: bandwidth of long ones, latency of short ones, pinned and pageable."""

import ctypes
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from orrery.calibrate.micro.cuda.driver import POINTER, SIZE
from orrery.calibrate.micro.cuda.gpu import Gpu
from orrery.calibrate.micro.cuda.timing import seconds
from orrery.calibrate.micro.reading import Reading, of_samples, rate_of, repeated

LONG_BYTES, PAGEABLE_BYTES, SHORT_BYTES = 2**28, 2**26, 8
SHORT_COUNT = 200
DEVICE_BYTES = 2**30
LINK = "host_each_way_bytes_per_s"


def pinned(gpu: Gpu) -> Iterator[Reading]:
    """Long copies from and to pinned memory, and both at once."""
    with _pinned(gpu, 2 * LONG_BYTES) as host, gpu.buffer(2 * LONG_BYTES) as device:
        for name, copy in (("host_to_device", _to_device), ("device_to_host", _to_host)):
            samples = seconds(gpu, partial(copy, gpu, host, device, LONG_BYTES, gpu.stream))
            yield rate_of(f"{name}_pinned", samples, float(LONG_BYTES), "bytes_per_s", "256 MiB", fact=LINK)
        yield _both(gpu, host, device)


def _both(gpu: Gpu, host: int, device: POINTER) -> Reading:
    second = gpu.driver.made("cuStreamCreate", ctypes.c_uint(1))

    def sample() -> float:
        before = time.perf_counter()
        _to_device(gpu, host, device, LONG_BYTES, gpu.stream)
        _to_host(gpu, host + LONG_BYTES, POINTER(device.value + LONG_BYTES), LONG_BYTES, second)
        gpu.synchronise()
        gpu.driver.call("cuStreamSynchronize", second)
        return time.perf_counter() - before

    where = "256 MiB each way at once, both counted"
    return rate_of("both_ways_pinned", repeated(sample), 2.0 * LONG_BYTES, "bytes_per_s", where)


def pageable(gpu: Gpu) -> Iterator[Reading]:
    """Long copies from and to ordinary memory."""
    array: np.ndarray[Any, Any] = np.ones(PAGEABLE_BYTES, dtype=np.uint8)
    at = array.ctypes.data
    with gpu.buffer(PAGEABLE_BYTES) as device:
        for name, copy in (("host_to_device", _to_device), ("device_to_host", _to_host)):
            samples = repeated(_waited(gpu, partial(copy, gpu, at, device, PAGEABLE_BYTES, gpu.stream)))
            yield rate_of(f"{name}_pageable", samples, float(PAGEABLE_BYTES), "bytes_per_s", "64 MiB")


def short(gpu: Gpu) -> Iterator[Reading]:
    """Eight bytes, copied and waited for."""
    array: np.ndarray[Any, Any] = np.ones(SHORT_BYTES, dtype=np.uint8)
    with _pinned(gpu, SHORT_BYTES) as host, gpu.buffer(SHORT_BYTES) as device:
        for kind, at in (("pinned", host), ("pageable", array.ctypes.data)):
            for name, copy in (("host_to_device", _to_device), ("device_to_host", _to_host)):
                many = partial(_many, gpu, partial(copy, gpu, at, device, SHORT_BYTES, gpu.stream))
                samples = repeated(_waited(gpu, many))
                yield of_samples(f"short_{name}_{kind}", samples, "s", "8 B, waited for", per=SHORT_COUNT)


def device(gpu: Gpu) -> Iterator[Reading]:
    """The driver's own copy and fill within the device's memory."""
    with gpu.buffer(DEVICE_BYTES) as first, gpu.buffer(DEVICE_BYTES) as last:
        copied = gpu.driver.caller("cuMemcpyDtoDAsync_v2", last, first, SIZE(DEVICE_BYTES), gpu.stream)
        fact = "memory_bandwidth_bytes_per_s"
        samples, filled = seconds(gpu, copied), seconds(gpu, partial(gpu.fill, first, DEVICE_BYTES))
        yield rate_of("device_copy", samples, 2.0 * DEVICE_BYTES, "bytes_per_s", "1 GiB, both counted", fact=fact)
        yield rate_of("device_fill", filled, float(DEVICE_BYTES), "bytes_per_s", "1 GiB", fact=fact)


@contextmanager
def _pinned(gpu: Gpu, size_bytes: int) -> Generator[int]:
    """Memory of the host that stays where it is; its address."""
    found = ctypes.c_void_p()
    gpu.driver.call("cuMemHostAlloc", ctypes.byref(found), SIZE(size_bytes), ctypes.c_uint(0))
    try:
        yield int(found.value or 0)
    finally:
        gpu.driver.call("cuMemFreeHost", found)


def _to_device(gpu: Gpu, host: int, device: POINTER, size_bytes: int, stream: Any) -> None:
    gpu.driver.call("cuMemcpyHtoDAsync_v2", device, ctypes.c_void_p(host), SIZE(size_bytes), stream)


def _to_host(gpu: Gpu, host: int, device: POINTER, size_bytes: int, stream: Any) -> None:
    gpu.driver.call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(host), device, SIZE(size_bytes), stream)


def _waited(gpu: Gpu, work: Callable[[], object]) -> Callable[[], float]:
    def sample() -> float:
        gpu.synchronise()
        before = time.perf_counter()
        work()
        gpu.synchronise()
        return time.perf_counter() - before

    return sample


def _many(gpu: Gpu, copy: Callable[[], object]) -> None:
    for _ in range(SHORT_COUNT):
        copy()
        gpu.synchronise()


BENCHMARKS = (pinned, pageable, short, device)

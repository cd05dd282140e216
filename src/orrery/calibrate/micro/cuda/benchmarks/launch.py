"""Launches: the host's time for one, its way to the device and back, and the gap between kernels that depend."""

import time
from collections.abc import Callable, Iterator

from orrery.calibrate.micro.cuda.compiler import source
from orrery.calibrate.micro.cuda.gpu import Gpu
from orrery.calibrate.micro.cuda.timing import seconds
from orrery.calibrate.micro.reading import Reading, of_samples, repeated

COUNT = 200
GRAPHS = 20
"""Launches in a row: as many as wait in the queue without stopping the host."""
SPIN_CYCLES = 20_000
"""About ten microseconds: longer than a launch, so that the device never waits for the host."""
HOPPER = (9, 0)
WARP = 32


def host(gpu: Gpu) -> Iterator[Reading]:
    """The host's time of one launch among many, and of one with waiting for its end."""
    empty = gpu.kernel(source("launch"), "empty")
    launched = gpu.launcher(empty, 1, 1)
    graphs = {count: gpu.captured(_times(launched, count)) for count in (1, COUNT)}
    yield of_samples(
        "launch_host_time", _host_s(gpu, launched, COUNT), "s", "empty kernel, the host's call through ctypes"
    )
    yield of_samples("launch_and_wait", _waited_s(gpu, launched), "s", "empty kernel, launched and waited for")
    for count, graph in graphs.items():
        yield of_samples(
            f"graph_launch_host_time_{count}", _host_s(gpu, graph, GRAPHS), "s", f"a graph of {count} empty kernels"
        )
        yield of_samples(
            f"graph_launch_and_wait_{count}", _waited_s(gpu, graph), "s", f"a graph of {count} empty kernels"
        )


def periods(gpu: Gpu) -> Iterator[Reading]:
    """The device's time for each of many empty kernels, launched one by one and from a graph."""
    many = _times(gpu.launcher(gpu.kernel(source("launch"), "empty"), 1, 1), COUNT)
    for where, work in (("stream", many), ("graph", gpu.captured(many))):
        yield of_samples(f"empty_kernel_period_{where}", seconds(gpu, work), "s", f"{COUNT} in a {where}", per=COUNT)


def gaps(gpu: Gpu) -> Iterator[Reading]:
    """The time between the end of a kernel and the start of its successor, both of one block."""
    spin = gpu.kernel(source("launch"), "spin")
    yield from _gaps(gpu, "kernel_gap", gpu.launcher(spin, 1, WARP, SPIN_CYCLES))


def early_gaps(gpu: Gpu) -> Iterator[Reading]:
    """The same with programmatic dependent launches, from Hopper on."""
    if gpu.capability >= HOPPER:
        early = gpu.kernel(source("launch"), "spin_early")
        yield from _gaps(gpu, "early_kernel_gap", gpu.early_launcher(early, 1, WARP, SPIN_CYCLES))


def _gaps(gpu: Gpu, name: str, one: Callable[[], object]) -> Iterator[Reading]:
    """Many kernels that wait, less one kernel that waits as long as all of them."""
    whole = gpu.launcher(gpu.kernel(source("launch"), "spin"), 1, WARP, COUNT * SPIN_CYCLES)
    many = _times(one, COUNT)
    for where, work in (("stream", many), ("graph", gpu.captured(many))):
        pairs = zip(seconds(gpu, work), seconds(gpu, whole), strict=True)
        samples = [(apart_s - whole_s) / (COUNT - 1) for apart_s, whole_s in pairs]
        yield of_samples(f"{name}_{where}", samples, "s", f"{COUNT} kernels of one block in a {where}")


def _times(call: Callable[[], object], count: int) -> Callable[[], None]:
    def calls() -> None:
        for _ in range(count):
            call()

    return calls


def _host_s(gpu: Gpu, call: Callable[[], object], count: int) -> list[float]:
    """The host's seconds a call, while the device has room in its queue."""

    def sample() -> float:
        gpu.synchronise()
        before = time.perf_counter()
        for _ in range(count):
            call()
        took_s = time.perf_counter() - before
        gpu.synchronise()
        return took_s / count

    return repeated(sample)


def _waited_s(gpu: Gpu, call: Callable[[], object]) -> list[float]:
    def sample() -> float:
        gpu.synchronise()
        before = time.perf_counter()
        for _ in range(COUNT):
            call()
            gpu.synchronise()
        return (time.perf_counter() - before) / COUNT

    return repeated(sample)


BENCHMARKS = (host, periods, gaps, early_gaps)

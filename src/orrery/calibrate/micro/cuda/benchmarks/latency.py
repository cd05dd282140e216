"""Latencies of the memories, in cycles: one thread that follows pointers [saavedra-1992], and the clock itself."""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

from orrery.calibrate.micro.chain import chained
from orrery.calibrate.micro.cuda.compiler import source
from orrery.calibrate.micro.cuda.driver import POINTER
from orrery.calibrate.micro.cuda.gpu import Gpu
from orrery.calibrate.micro.cuda.timing import OUT_BYTES, cycles
from orrery.calibrate.micro.reading import Reading, of_samples, repeated

LINE_BYTES = 128
PAGE_BYTES = 2**21
L1_BYTES, L2_BYTES, MEMORY_BYTES = 2**14, 2**21, 2**28
STEPS = 2**14
SHARED_WORDS, SHARED_STRIDE = 1024, 33
SPIN_CYCLES = 10_000_000


def l1(gpu: Gpu) -> Iterator[Reading]:
    """A chain of lines that the first-level cache holds."""
    yield _cached(gpu, "l1_latency", "chase_l1", L1_BYTES, "inside: l1_cycles")


def l2(gpu: Gpu) -> Iterator[Reading]:
    """A chain of lines that the second-level cache holds, past the first level."""
    yield _cached(gpu, "l2_latency", "chase_l2", L2_BYTES, "inside: l2_cycles")


def _cached(gpu: Gpu, name: str, kernel: str, size_bytes: int, fact: str) -> Reading:
    run = gpu.kernel(source("latency"), kernel)
    with gpu.buffer(size_bytes) as region, gpu.buffer(OUT_BYTES) as out:
        start = written(gpu, region, size_bytes, LINE_BYTES, size_bytes // LINE_BYTES)
        lines = size_bytes // LINE_BYTES
        samples = cycles(gpu, gpu.launcher(run, 1, 1, start, lines, start, STEPS, out), out, per=STEPS)
        return of_samples(name, samples, "cycles", f"{size_bytes // 1024} KiB, one thread", fact=fact)


def memory(gpu: Gpu) -> Iterator[Reading]:
    """Lines of 256 MiB in random order, each once, after the caches were filled with other bytes; pages are known."""
    run, steps = gpu.kernel(source("latency"), "chase_l2"), 2**13
    other_bytes = 4 * max(gpu.attribute("l2_bytes"), 2**24)
    with gpu.buffer(MEMORY_BYTES) as region, gpu.buffer(other_bytes) as other, gpu.buffer(OUT_BYTES) as out:
        start = written(gpu, region, MEMORY_BYTES, LINE_BYTES, steps)
        pages = MEMORY_BYTES // PAGE_BYTES
        warm = written(gpu, POINTER(region.value), MEMORY_BYTES, PAGE_BYTES, pages, first_bytes=LINE_BYTES // 2)
        one = gpu.launcher(run, 1, 1, warm, pages, start, steps, out)

        def launched() -> None:
            gpu.fill(other, other_bytes)
            one()

        samples = cycles(gpu, launched, out, per=steps)
        where = "256 MiB at random, caches cold, pages known, one thread"
        yield of_samples("memory_latency", samples, "cycles", where, fact="inside: memory_cycles")


def shared(gpu: Gpu) -> Iterator[Reading]:
    """A chain of words in shared memory."""
    run = gpu.kernel(source("latency"), "chase_shared")
    with gpu.buffer(OUT_BYTES) as out:
        one = gpu.launcher(run, 1, 1, SHARED_WORDS, SHARED_STRIDE, STEPS, out, shared_bytes=4 * SHARED_WORDS)
        samples = cycles(gpu, one, out, per=STEPS)
        yield of_samples("shared_memory_latency", samples, "cycles", "one thread", fact="inside: shared_memory_cycles")


def clock(gpu: Gpu) -> Iterator[Reading]:
    """Cycles a second of one processor while it waits."""
    run = gpu.kernel(source("latency"), "clock_rate")
    with gpu.buffer(OUT_BYTES) as out:

        def sample() -> float:
            gpu.launch(run, 1, 1, SPIN_CYCLES, out)
            cycles, nanoseconds = gpu.read(out, 2)
            return cycles / (nanoseconds * 1e-9)

        yield of_samples("processor_clock", repeated(sample), "hz", "one thread", fact="compute_clock_hz")


def written(gpu: Gpu, region: POINTER, size_bytes: int, stride_bytes: int, count: int, first_bytes: int = 0) -> POINTER:
    """A chain of ``count`` pointers, ``stride_bytes`` apart or more, in random order; the address where it begins.

    Words between those of the chain stay as they are.
    """
    places = first_bytes + stride_bytes * np.arange(size_bytes // stride_bytes, dtype=np.int64)
    chosen = np.sort(np.random.default_rng(0).permutation(places)[:count])
    follows = chained(count)
    addresses = (region.value + chosen[follows]).astype(np.uint64)
    whole: np.ndarray[Any, Any] = np.zeros(size_bytes // 8, dtype=np.uint64)
    gpu.synchronise()
    gpu.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(whole.ctypes.data), region, ctypes.c_size_t(size_bytes))
    whole[chosen // 8] = addresses
    gpu.write(region, whole)
    return POINTER(region.value + int(chosen[0]))


BENCHMARKS = (shared, l1, l2, memory, clock)

"""Bandwidth of each memory: shared, first and second level in bytes a cycle, the device's memory in bytes a second."""

from collections.abc import Iterator

from orrery.calibrate.micro.cuda.compiler import source
from orrery.calibrate.micro.cuda.driver import POINTER
from orrery.calibrate.micro.cuda.gpu import Gpu
from orrery.calibrate.micro.cuda.timing import cycles, seconds
from orrery.calibrate.micro.reading import Reading, rate_of

THREADS = 1024
WORD_BYTES = 16
INNER_WORDS, INNER_ROUNDS = 4096, 256
"""64 KiB of each processor, again and again."""
L2_WORDS, L2_ROUNDS = 2**19, 8
"""8 MiB that all processors read."""
MEMORY_BYTES, MEMORY_FRAC = 2**31, 0.2
BLOCKS = 2
UNROLLED = 4


def shared(gpu: Gpu) -> Iterator[Reading]:
    """Shared memory, every processor its own."""
    size_bytes, grid = WORD_BYTES * INNER_WORDS, gpu.num_processors
    run = gpu.kernel(source("bandwidth"), "read_shared", size_bytes)
    with gpu.buffer(8 * grid) as out:
        one = gpu.launcher(run, grid, THREADS, INNER_WORDS, INNER_ROUNDS, out, shared_bytes=size_bytes)
        samples = cycles(gpu, one, out, blocks=grid)
        amount = float(size_bytes * INNER_ROUNDS)
        yield rate_of("shared_memory_read", samples, amount, "bytes_per_cycle", "each processor")


def l1(gpu: Gpu) -> Iterator[Reading]:
    """First-level cache, every processor its own region."""
    run, grid = gpu.kernel(source("bandwidth"), "read_l1"), gpu.num_processors
    with gpu.buffer(WORD_BYTES * INNER_WORDS * grid) as region, gpu.buffer(8 * grid) as out:
        samples = cycles(
            gpu, gpu.launcher(run, grid, THREADS, region, INNER_WORDS, INNER_WORDS, INNER_ROUNDS, out), out, blocks=grid
        )
        amount = float(WORD_BYTES * INNER_WORDS * INNER_ROUNDS)
        yield rate_of("l1_read", samples, amount, "bytes_per_cycle", "each processor")


def l2(gpu: Gpu) -> Iterator[Reading]:
    """Second-level cache, all processors the same region, past the first level."""
    run, grid = gpu.kernel(source("bandwidth"), "read_l2"), BLOCKS * gpu.num_processors
    with gpu.buffer(WORD_BYTES * L2_WORDS) as region, gpu.buffer(8 * grid) as out:
        samples = cycles(gpu, gpu.launcher(run, grid, THREADS, region, L2_WORDS, 0, L2_ROUNDS, out), out, blocks=grid)
        amount = float(WORD_BYTES * L2_WORDS * L2_ROUNDS * BLOCKS)
        where = f"each processor, 8 MiB, all {gpu.num_processors} together"
        yield rate_of("l2_read", samples, amount, "bytes_per_cycle", where, fact="inside: l2_cycle_bytes / processors")


def memory(gpu: Gpu) -> Iterator[Reading]:
    """The device's memory: read, written, and copied (both counted)."""
    grid = BLOCKS * gpu.num_processors
    unit = UNROLLED * grid * THREADS
    words = int(min(MEMORY_BYTES, MEMORY_FRAC * gpu.free_bytes())) // WORD_BYTES // unit * unit
    size_bytes = WORD_BYTES * words
    with gpu.buffer(size_bytes) as first, gpu.buffer(size_bytes) as last, gpu.buffer(8) as out:
        for name, times in (("read", 1), ("write", 1), ("copy", 2)):
            run = gpu.kernel(source("bandwidth"), f"{name}_pass")
            samples = seconds(gpu, gpu.launcher(run, grid, THREADS, first, last, POINTER(words), out))
            yield rate_of(
                f"memory_{name}",
                samples,
                float(times * size_bytes),
                "bytes_per_s",
                f"{size_bytes / 2**30:.2f} GiB",
                fact="memory_bandwidth_bytes_per_s",
            )


BENCHMARKS = (shared, l1, l2, memory)

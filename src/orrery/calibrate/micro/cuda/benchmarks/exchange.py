"""Exchange between blocks: flags, barriers, and one another's shared memory in a cluster."""

from collections.abc import Callable, Iterator

from orrery.calibrate.micro.cuda.compiler import source
from orrery.calibrate.micro.cuda.driver import POINTER
from orrery.calibrate.micro.cuda.gpu import Gpu
from orrery.calibrate.micro.cuda.timing import OUT_BYTES, cycles
from orrery.calibrate.micro.reading import Reading, of_samples, rate_of

HOPPER = (9, 0)
THREADS = 1024
ROUNDS = 4096
WORDS, WORD_BYTES = 1024, 4
RING_WORDS, RING_WORD_BYTES, RING_ROUNDS = 4096, 16, 256
FLAG_BYTES = 512


def flags(gpu: Gpu) -> Iterator[Reading]:
    """A number there and back between two blocks through the second-level cache; half of it is one way."""
    run = gpu.kernel(source("exchange"), "ping_pong")
    for name, other in (("next", 1), ("far", gpu.num_processors // 2)):
        with gpu.buffer(FLAG_BYTES) as held, gpu.buffer(OUT_BYTES) as out:
            one = gpu.launcher(run, gpu.num_processors, 1, held, other, ROUNDS, out)
            samples = cycles(gpu, _after_zeros(gpu, held, one), out, per=2 * ROUNDS)
            yield of_samples(f"flag_to_{name}_block", samples, "cycles", f"one way, blocks 0 and {other}")


def barriers(gpu: Gpu) -> Iterator[Reading]:
    """Barriers of one block, by its threads, and of a block on every processor."""
    run = gpu.kernel(source("exchange"), "block_barrier")
    for threads in (32, 256, 1024):
        with gpu.buffer(OUT_BYTES) as out:
            samples = cycles(gpu, gpu.launcher(run, 1, threads, ROUNDS, out), out, per=ROUNDS)
            yield of_samples(f"block_barrier_{threads}", samples, "cycles", f"{threads} threads")
    yield _grid_barrier(gpu)


def _grid_barrier(gpu: Gpu) -> Reading:
    run, rounds, grid = gpu.kernel(source("exchange"), "grid_barrier"), 1024, gpu.num_processors
    with gpu.buffer(FLAG_BYTES) as count, gpu.buffer(8 * grid) as out:
        one = gpu.launcher(run, grid, 256, count, rounds, out)
        samples = cycles(gpu, _after_zeros(gpu, count, one), out, per=rounds, blocks=grid)
        return of_samples("grid_barrier", samples, "cycles", f"{grid} blocks of 256, one counter")


def cluster_latency(gpu: Gpu) -> Iterator[Reading]:
    """A chain of words in the shared memory of the other block of a cluster, and the cluster's barrier."""
    if gpu.capability < HOPPER:
        return
    chase, barrier = gpu.kernel(source("cluster"), "chase"), gpu.kernel(source("cluster"), "barrier_2")
    with gpu.buffer(OUT_BYTES) as out:
        samples = cycles(
            gpu, gpu.launcher(chase, 2, 32, WORDS, ROUNDS, out, shared_bytes=WORD_BYTES * WORDS), out, per=ROUNDS
        )
        waits = cycles(gpu, gpu.launcher(barrier, 2, 128, ROUNDS, out), out, per=ROUNDS)
        fact = "inside: other_processor_cycles"
        yield of_samples("cluster_shared_memory_latency", samples, "cycles", "cluster of two", fact=fact)
        yield of_samples("cluster_barrier_2", waits, "cycles", "two blocks of 128 threads")


def cluster_rate(gpu: Gpu) -> Iterator[Reading]:
    """Every block reads its neighbour's shared memory, in rings of two, four and eight: all processors together."""
    if gpu.capability < HOPPER:
        return
    size_bytes = RING_WORD_BYTES * RING_WORDS
    for ring, fact in (
        (2, "inside: pair_cycle_bytes / processors"),
        (4, "inside: four_cycle_bytes / processors"),
        (8, ""),
    ):
        run = gpu.kernel(source("cluster"), f"ring_{ring}", size_bytes)
        grid = gpu.num_processors // ring * ring
        with gpu.buffer(8 * grid) as out:
            one = gpu.launcher(run, grid, THREADS, RING_WORDS, RING_ROUNDS, out, shared_bytes=size_bytes)
            samples = cycles(gpu, one, out, blocks=grid)
            amount = float(size_bytes * RING_ROUNDS)
            where = f"each processor, rings of {ring}, {grid} processors"
            yield rate_of(f"cluster_read_{ring}", samples, amount, "bytes_per_cycle", where, fact=fact)


def _after_zeros(gpu: Gpu, held: POINTER, launched: Callable[[], object]) -> Callable[[], None]:
    """A launch whose flags are zero when it begins."""

    def both() -> None:
        gpu.fill(held, FLAG_BYTES)
        launched()

    return both


BENCHMARKS = (flags, barriers, cluster_latency, cluster_rate)

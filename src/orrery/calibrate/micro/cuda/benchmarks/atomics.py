"""Atomic additions: latency of a chain, and the rate of all threads on one word or on a word each."""

from collections.abc import Iterator

from orrery.calibrate.micro.cuda.compiler import source
from orrery.calibrate.micro.cuda.gpu import Gpu
from orrery.calibrate.micro.cuda.timing import OUT_BYTES, cycles, seconds
from orrery.calibrate.micro.reading import Reading, of_samples, rate_of

STEPS = 4096
THREADS = 1024
ROUNDS = 64


def latency(gpu: Gpu) -> Iterator[Reading]:
    """One thread whose additions each return what the next one adds."""
    chain, inner = gpu.kernel(source("atomics"), "chain"), gpu.kernel(source("atomics"), "chain_shared")
    with gpu.buffer(OUT_BYTES) as word, gpu.buffer(OUT_BYTES) as out:
        samples = cycles(gpu, gpu.launcher(chain, 1, 1, word, STEPS, out), out, per=STEPS)
        yield of_samples("atomic_add_latency", samples, "cycles", "device memory, one thread")
        samples = cycles(gpu, gpu.launcher(inner, 1, 1, STEPS, out), out, per=STEPS)
        yield of_samples("atomic_add_shared_latency", samples, "cycles", "shared memory, one thread")


def rate(gpu: Gpu) -> Iterator[Reading]:
    """Additions a second of all threads of a block on every processor, results not asked for."""
    run, grid = gpu.kernel(source("atomics"), "adds"), gpu.num_processors
    with gpu.buffer(4 * grid * THREADS) as words:
        for name, stride in (("same_word", 0), ("own_words", 1)):
            samples = seconds(gpu, gpu.launcher(run, grid, THREADS, words, stride, ROUNDS))
            amount = float(grid * THREADS * ROUNDS)
            yield rate_of(f"atomic_add_{name}", samples, amount, "per_s", f"{grid} blocks of {THREADS} threads")


BENCHMARKS = (latency, rate)

"""Tensor cores: latency of a warp's product, and the rate of products by format and shape, without any memory."""

from collections.abc import Iterator, Mapping

from orrery.calibrate.micro.cuda.assembly import (
    MMA,
    WGMMA,
    WGMMA_STEPS,
    Product,
    mma_source,
    wgmma_bytes,
    wgmma_source,
)
from orrery.calibrate.micro.cuda.gpu import Gpu
from orrery.calibrate.micro.cuda.timing import OUT_BYTES, cycles, seconds
from orrery.calibrate.micro.reading import Reading, of_samples, rate_of

WARP, GROUP = 32, 128
WARPS, CHAINS = 8, 4
ROUNDS = 2048
GROUPS = 2
ALIGNED_BYTES = 1024


def mma_latency(gpu: Gpu) -> Iterator[Reading]:
    """One warp, each product adding to the one before."""
    for format, product in _available(gpu, MMA):
        run = gpu.kernel(mma_source(product, 1, is_zero=True), "products")
        with gpu.buffer(OUT_BYTES) as out:
            samples = cycles(gpu, gpu.launcher(run, 1, WARP, ROUNDS, out), out, per=ROUNDS)
            fact = "inside: mma_cycles" if format == "fp16" else ""
            yield of_samples(f"mma_{format}_latency", samples, "cycles", f"{product.shape}, one warp", fact=fact)


def mma_rate(gpu: Gpu) -> Iterator[Reading]:
    """All processors, eight warps each, four independent products a warp."""
    for format, product in _available(gpu, MMA):
        run = gpu.kernel(mma_source(product, CHAINS, is_zero=False), "products")
        amount = float(gpu.num_processors * WARPS * CHAINS * ROUNDS * product.flops)
        with gpu.buffer(8 * gpu.num_processors) as out:
            samples = seconds(gpu, gpu.launcher(run, gpu.num_processors, WARP * WARPS, ROUNDS, out))
            yield rate_of(f"mma_{format}_rate", samples, amount, "flops_per_s", product.shape, fact=_peak(format))


def wgmma_rate(gpu: Gpu) -> Iterator[Reading]:
    """All processors, two groups of four warps each; operands that are zero draw less power."""
    for name, product in _available(gpu, WGMMA):
        for is_zero in (False, True) if product.n == 256 else (False,):
            yield _wgmma(gpu, name, product, is_zero=is_zero)


def _wgmma(gpu: Gpu, name: str, product: Product, *, is_zero: bool) -> Reading:
    shared_bytes = wgmma_bytes(product) + ALIGNED_BYTES
    run = gpu.kernel(wgmma_source(product, is_zero=is_zero), "products", shared_bytes)
    amount = float(gpu.num_processors * GROUPS * WGMMA_STEPS * ROUNDS * product.flops)
    with gpu.buffer(8 * gpu.num_processors) as out:
        samples = seconds(
            gpu, gpu.launcher(run, gpu.num_processors, GROUP * GROUPS, ROUNDS, out, shared_bytes=shared_bytes)
        )
    end, what = ("_zeros", "operands zero") if is_zero else ("", "operands vary")
    fact = _peak(name.split("_n")[0])
    return rate_of(f"wgmma_{name}{end}_rate", samples, amount, "flops_per_s", f"{product.shape}, {what}", fact=fact)


def _available(gpu: Gpu, products: Mapping[str, Product]) -> list[tuple[str, Product]]:
    capability = gpu.capability
    return [(name, product) for name, product in products.items() if product.runs_on(capability)]


def _peak(format: str) -> str:
    return f"dense_{format.removesuffix('_fp16_sum')}_flops_per_s"


BENCHMARKS = (mma_latency, mma_rate, wgmma_rate)

"""Products and attention as PyTorch's libraries do them, one after the other in a CUDA graph where there is one."""

from collections.abc import Iterator

from orrery.calibrate.measure.backends.backend import Backend, Unsupported, time_prepared
from orrery.calibrate.measure.backends.on_pytorch import PytorchBackend
from orrery.calibrate.micro.reading import Failed, Reading
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Gemm, Op

SIDES = (1024, 4096, 8192)
BUDGET_S = 0.15
HEADS, KV_HEADS, HEAD_SIZE = 32, 8, 128
TOKENS, SEQUENCES = 4096, 64
FORMAT, FORMAT_BYTES = "bf16", 2.0

PREFILL = AttentionPrefill(
    batch=1,
    query_tokens=TOKENS,
    context_tokens=TOKENS,
    num_heads=HEADS,
    num_kv_heads=KV_HEADS,
    head_size=HEAD_SIZE,
    format=FORMAT,
    kv_format=FORMAT,
)
DECODE = AttentionDecode(
    batch=SEQUENCES,
    context_tokens=TOKENS,
    num_heads=HEADS,
    num_kv_heads=KV_HEADS,
    head_size=HEAD_SIZE,
    format=FORMAT,
    kv_format=FORMAT,
)


def opened(index: int) -> tuple[PytorchBackend, str]:
    """PyTorch on the GPU of that number, a kernel at a time, and the GPU's name."""
    backend = PytorchBackend(f"cuda:{index}", is_bare=True)
    return backend, str(backend.facts()["title"].value)


def products(backend: Backend) -> Iterator[Reading | Failed]:
    """Operations a second of square products in every format that the backend has, by side."""
    for format in backend.formats():
        for side in SIDES:
            op = Gemm(m=side, n=side, k=side, format=format, is_cold=False)
            where, fact = f"{side} x {side} x {side}", f"dense_{format}_flops_per_s"
            yield _rate(backend, op, f"product_{format}_{side}", 2.0 * side**3, "flops_per_s", where, fact)


def prefill(backend: Backend) -> Iterator[Reading | Failed]:
    """Attention over a prompt, in operations a second: half of them, as it is causal."""
    flops = 4.0 * HEADS * HEAD_SIZE * TOKENS * (TOKENS + 1) / 2
    where = f"{TOKENS} tokens, {HEADS} heads of {HEAD_SIZE}, causal"
    name, fact = f"attention_prefill_{FORMAT}", f"dense_{FORMAT}_flops_per_s"
    yield _rate(backend, PREFILL, name, flops, "flops_per_s", where, fact)


def decode(backend: Backend) -> Iterator[Reading | Failed]:
    """Attention over a cache, in bytes a second of the cache."""
    read_bytes = FORMAT_BYTES * 2 * SEQUENCES * TOKENS * KV_HEADS * HEAD_SIZE
    where = f"{SEQUENCES} sequences of {TOKENS} tokens, {HEADS} heads on {KV_HEADS} of the cache"
    name, fact = f"attention_decode_{FORMAT}", "memory_bandwidth_bytes_per_s"
    yield _rate(backend, DECODE, name, read_bytes, "bytes_per_s", where, fact)


def _rate(backend: Backend, op: Op, name: str, amount: float, unit: str, where: str, fact: str) -> Reading | Failed:
    prepared = backend.prepare(op)
    if isinstance(prepared, Unsupported):
        return Failed(name=name, error=prepared.reason)
    timed = time_prepared(backend, prepared, budget_s=BUDGET_S)
    return Reading(
        name=name, value=amount / timed.time_s, unit=unit, spread_frac=timed.spread_frac, condition=where, fact=fact
    )


SUBJECT = opened
BENCHMARKS = (products, prefill, decode)

"""NumPy on the processor, in FP32: the kernels of ``numpy_kernels``."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import psutil

from orrery.base.sources import Fact
from orrery.calibrate.measure import numpy_kernels as kernels
from orrery.calibrate.measure.backends.backend import (
    Prepared,
    Unsupported,
    attention_refusal,
    is_single,
    num_copies,
    rope_head_size,
    rotating,
)
from orrery.calibrate.measure.facts import FALLBACK_CACHE_BYTES, host_facts, last_level_cache
from orrery.calibrate.measure.numpy_kernels import Array
from orrery.calibrate.measure.probes import Launch, Probe, Stream
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm

FORMATS = ("fp32",)
FP32_BYTES = 4.0
BLOCK = 2**16
"""Numbers drawn for one array; drawing more takes longer than timing."""
DRAWN = 65_521
"""Numbers that operands repeat; a prime, so that no two rows are alike."""


class NumpyBackend:
    """NumPy as it is installed: its BLAS for products, one core for everything else."""

    name = "numpy"
    device_kind = "cpu"
    board = ""

    def formats(self) -> tuple[str, ...]:
        """FP32: NumPy multiplies nothing narrower in hardware."""
        return FORMATS

    def facts(self) -> Mapping[str, Fact]:
        """Return the facts of the processor."""
        return host_facts()

    def bare(self) -> "NumpyBackend":
        """Itself: a call and its kernel are one."""
        return self

    def synchronise(self) -> None:
        """NumPy is done when a call returns."""

    def prepare(self, probe: Probe) -> Prepared | Unsupported:
        """The work with its operands in place; see ``Backend``."""
        if not is_single(probe):
            return Unsupported(reason="sizes are arrays; one op at a time can be run")
        match probe:
            case Gemm():
                return self._gemm(probe)
            case AttentionPrefill() | AttentionDecode():
                return self._attend(probe)
            case Elementwise():
                return self._elementwise(probe)
            case Stream():
                return self._stream(probe)
            case Launch():
                one = np.zeros(1, dtype=np.float32)
                return Prepared(call=lambda: np.add(one, one, out=one))
            case _:
                return Unsupported(reason=f"no NumPy kernel does {type(probe).__name__}")

    def _gemm(self, op: Gemm) -> Prepared | Unsupported:
        m, n, k, batch = (int(size) for size in (op.m, op.n, op.k, op.batch))
        lead = (batch,) if batch > 1 else ()
        copies = _copies(op.format, FP32_BYTES * batch * k * n, is_cold=op.is_cold)
        if isinstance(copies, Unsupported):
            return copies
        x = _drawn(*lead, m, k)
        return Prepared(call=rotating(kernels.product, [(x, _drawn(*lead, k, n)) for _ in range(copies)]))

    def _attend(self, op: AttentionPrefill | AttentionDecode) -> Prepared | Unsupported:
        """One ``attend`` a sequence, each with its own cache."""
        if refusal := attention_refusal(op, FORMATS):
            return refusal
        batch, tokens, context = int(op.batch), int(op.query_tokens), int(op.context_tokens)
        heads, kv_heads, size = int(op.num_heads), int(op.num_kv_heads), int(op.head_size)
        is_cold = isinstance(op, AttentionDecode) and op.is_cold
        copies = _copies("fp32", FP32_BYTES * batch * 2 * kv_heads * context * size, is_cold=is_cold)
        if isinstance(copies, Unsupported):
            return copies
        query, new = _drawn(tokens, heads, size), _drawn(tokens, kv_heads, size)
        sets = [tuple(_drawn(2, kv_heads, context, size) for _ in range(batch)) for _ in range(copies)]

        def attend_all(*caches: Array) -> None:
            for keys, values in caches:
                kernels.attend(query, new, new, keys, values, context - tokens)

        return Prepared(call=rotating(attend_all, sets))

    def _elementwise(self, op: Elementwise) -> Prepared | Unsupported:
        tokens, width = int(op.tokens), int(op.width)
        copies = _copies(op.format, 3 * FP32_BYTES * tokens * width, is_cold=False)
        if isinstance(copies, Unsupported):
            return copies
        call = _elementwise(op.kind, tokens, width)
        return Prepared(call=call) if call else Unsupported(reason=f"no NumPy kernel does {op.kind!r}")

    def _stream(self, probe: Stream) -> Prepared | Unsupported:
        fits = _copies("fp32", probe.footprint_bytes, is_cold=False)
        if isinstance(fits, Unsupported):
            return fits
        arrays = [_drawn(probe.elements) for _ in range(probe.num_arrays)]
        first, second, last = arrays[0], arrays[1], arrays[-1]
        match probe.kind:
            case "read":
                return Prepared(call=lambda: np.dot(first, second))
            case "copy":
                return Prepared(call=lambda: np.copyto(last, first))
            case _:
                return Prepared(call=lambda: np.add(first, second, out=last))


def _elementwise(kind: str, tokens: int, width: int) -> Callable[[], object] | None:
    x, y = _drawn(tokens, width), _drawn(tokens, width)
    match kind:
        case "norm":
            gain = _drawn(width)
            return lambda: kernels.norm(x, y, gain)
        case "gated_activation":
            both = _drawn(tokens, 2 * width)  # the op's width is what leaves
            return lambda: kernels.gated_activation(both)
        case "sample":
            return lambda: kernels.sample(x)
        case "softmax":
            return lambda: kernels.softmax(x)
        case "rope":
            size = rope_head_size(width)
            heads = x.reshape(tokens, width // size, size)
            return lambda: kernels.rotate(heads, 0)
        case "add":
            return lambda: np.add(x, y)
        case _:
            return None


def _drawn(*shape: int) -> Array:
    """Numbers as in a model: small, of both signs, the same every time; a block of them again and again."""
    count = math.prod(shape)
    block = np.random.default_rng(0).standard_normal(min(count, BLOCK), dtype=np.float32) * np.float32(0.02)
    return np.resize(block, shape)


def _copies(format: str, set_bytes: float, *, is_cold: bool) -> int | Unsupported:
    """How many sets of operands; a refusal for other formats than FP32 and for what does not fit."""
    if format not in FORMATS:
        return Unsupported(reason=f"NumPy multiplies in {', '.join(FORMATS)} here, not in {format}")
    cache = last_level_cache()
    return num_copies(
        set_bytes,
        float(cache.value) if cache else FALLBACK_CACHE_BYTES,
        psutil.virtual_memory().available,
        is_cold=is_cold,
    )

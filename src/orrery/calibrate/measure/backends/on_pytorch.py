"""PyTorch on the processor, an NVIDIA or AMD GPU, or an Apple GPU: the kernels of ``torch_kernels``."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from orrery.base.sources import Fact
from orrery.calibrate.measure import torch_kernels as kernels
from orrery.calibrate.measure.backends.backend import (
    Prepared,
    Unsupported,
    attention_refusal,
    is_single,
    num_copies,
    rope_head_size,
    rotating,
)
from orrery.calibrate.measure.backends.torch_device import TorchDevice
from orrery.calibrate.measure.probes import Launch, Probe, Stream
from orrery.calibrate.measure.torch_kernels import Tensor
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm

DTYPES = {
    "fp32": "float32",
    "tf32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp8": "float8_e4m3fn",
    "int8": "int8",
}
"""Formats that PyTorch multiplies in somewhere, and the type that holds them."""

WORDS = ("fp32", "bf16", "fp16")
"""Formats of everything that is no product."""

TRIED_SIZE = 64
"""Side of the product that tells whether a format works: every library wants multiples of 16 or 32."""

BLOCK = 2**20
"""Numbers drawn for one tensor; drawing more takes longer than timing."""

GRAPHED_CALLS = 32
"""Ops that a captured graph holds at least: its own launch is a small part of theirs."""


Work = tuple[Callable[..., object], list[tuple[Any, ...]]]
"""A callable, and the sets of operands that it is called with in turn."""


class PytorchBackend:
    """PyTorch on one ``device`` of ``torch_devices()``, as eager code calls it.

    ``is_bare``: kernels alone. Attention goes without the rotation and the writing of the cache that come with it, and
    on CUDA devices every call replays a captured graph, so that the host's own time for each kernel is no part of it.
    """

    name = "pytorch"

    def __init__(self, device: str, *, is_bare: bool = False) -> None:
        self._device = TorchDevice(device)
        self._is_bare = is_bare
        self.device_kind = "cpu" if self._device.type == "cpu" else "gpu"
        self._torch = self._device.torch
        self.board = self._device.board
        self._formats: tuple[str, ...] = ()

    def formats(self) -> tuple[str, ...]:
        """Return the formats in which a small product works here: PyTorch has no list of them."""
        if not self._formats:
            side = TRIED_SIZE
            tried = {f: self.prepare(Gemm(m=side, n=side, k=side, format=f, is_cold=False)) for f in DTYPES}
            self._formats = tuple(f for f, got in tried.items() if isinstance(got, Prepared))
        return self._formats

    def facts(self) -> Mapping[str, Fact]:
        """Return the facts of the device."""
        return self._device.facts

    def bare(self) -> "PytorchBackend":
        """The same device, a kernel at a time."""
        return PytorchBackend(self._device.name, is_bare=True)

    def synchronise(self) -> None:
        """Waits until the device is idle."""
        self._device.synchronise()

    def prepare(self, probe: Probe) -> Prepared | Unsupported:
        """The work with its operands in place; see ``Backend``. It has run once: what fails is refused here."""
        if not is_single(probe):
            return Unsupported(reason="sizes are arrays; one op at a time can be run")
        try:
            return self._ready(probe)
        except (RuntimeError, TypeError, ValueError, AttributeError) as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            return Unsupported(reason=f"PyTorch on {self._device.name} cannot: {first}")

    def _ready(self, probe: Probe) -> Prepared | Unsupported:
        found = self._work(probe)
        if isinstance(found, Unsupported):
            return found
        work, sets = found
        call = rotating(work, sets)
        call()
        self.synchronise()
        if not self._is_bare or self._device.type != "cuda":
            return Prepared(call=call)
        num_ops = len(sets) * math.ceil(GRAPHED_CALLS / len(sets))
        return Prepared(call=self._device.captured(call, num_ops), num_ops=num_ops)

    def _work(self, probe: Probe) -> Work | Unsupported:
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
                one = self._torch.zeros(1, device=self._device.name)
                return lambda: one.add_(1.0), [()]
            case _:
                return Unsupported(reason=f"no PyTorch kernel does {type(probe).__name__}")

    def _gemm(self, op: Gemm) -> Work | Unsupported:
        m, n, k, batch = (int(size) for size in (op.m, op.n, op.k, op.batch))
        if op.format not in DTYPES or (op.format == "tf32" and not self._device.has_tf32):
            return _not_in(op.format, [f for f in DTYPES if f != "tf32" or self._device.has_tf32])
        if batch > 1 and op.format not in WORDS:
            return Unsupported(reason=f"PyTorch multiplies no batches in {op.format}")
        lead = (batch,) if batch > 1 else ()
        copies = self._copies(batch * n * k * self._bytes(op.format), is_cold=op.is_cold)
        if isinstance(copies, Unsupported):
            return copies
        x = self._drawn(op.format, *lead, m, k)
        weights = [self._drawn(op.format, *lead, n, k).mT for _ in range(copies)]  # as a linear layer keeps them
        match op.format:
            case "tf32":
                return kernels.product_tf32, [(x, w) for w in weights]
            case "fp8":
                scale = self._torch.ones((), dtype=self._torch.float32, device=self._device.name)
                return kernels.product_fp8, [(x, w, scale) for w in weights]
            case "int8":
                return kernels.product_int8, [(x, w) for w in weights]
            case _:
                return kernels.product, [(x, w) for w in weights]

    def _attend(self, op: AttentionPrefill | AttentionDecode) -> Work | Unsupported:
        if refusal := attention_refusal(op, WORDS):
            return refusal
        batch, tokens, context = int(op.batch), int(op.query_tokens), int(op.context_tokens)
        heads, kv_heads, size = int(op.num_heads), int(op.num_kv_heads), int(op.head_size)
        shape = (batch, kv_heads, context, size)
        is_cold = isinstance(op, AttentionDecode) and op.is_cold
        copies = self._copies(2 * math.prod(shape) * self._bytes(op.format), is_cold=is_cold)
        if isinstance(copies, Unsupported):
            return copies
        caches = [(self._drawn(op.format, *shape), self._drawn(op.format, *shape)) for _ in range(copies)]
        if self._is_bare:
            alone = self._drawn(op.format, batch, heads, tokens, size)
            return partial(kernels.attention, alone), caches
        query = self._drawn(op.format, batch, tokens, heads, size)
        new = self._drawn(op.format, batch, tokens, kv_heads, size)
        table = kernels.turns(size, context, query)

        def attend(keys: Tensor, values: Tensor) -> Tensor:
            return kernels.attend(query, new, new, keys, values, table, context - tokens)

        return attend, caches

    def _elementwise(self, op: Elementwise) -> Work | Unsupported:
        tokens, width = int(op.tokens), int(op.width)
        word = "bf16" if op.kind == "quantise" else op.format
        if word not in WORDS:
            return _not_in(word, WORDS)
        fits = self._copies(4 * tokens * width * self._bytes(word), is_cold=False)
        if isinstance(fits, Unsupported):
            return fits
        x = self._drawn(word, tokens, width)
        match op.kind:
            case "norm":
                return kernels.norm, [(x, self._drawn(word, tokens, width), self._drawn(word, width))]
            case "gated_activation":  # the op's width is what leaves
                return kernels.gated_activation, [(self._drawn(word, tokens, 2 * width),)]
            case "sample":
                return kernels.sample, [(x,)]
            case "rope":
                size = rope_head_size(width)
                cos, sin = kernels.turns(size, tokens, x)
                return kernels.rotate, [(x.view(tokens, width // size, size), cos, sin)]
            case "add":
                return kernels.add, [(x, self._drawn(word, tokens, width))]
            case "softmax":
                return kernels.softmax, [(x,)]
            case "quantise" if op.format in ("int8", "fp8"):
                return (kernels.quantise_int8 if op.format == "int8" else kernels.quantise_fp8), [(x,)]
            case _:
                return Unsupported(reason=f"no PyTorch kernel does {op.kind!r} in {op.format}")

    def _stream(self, probe: Stream) -> Work | Unsupported:
        fits = self._copies(probe.footprint_bytes, is_cold=False)
        if isinstance(fits, Unsupported):
            return fits
        torch = self._torch
        arrays = [self._drawn("fp32", probe.elements) for _ in range(probe.num_arrays)]
        first, second, last = arrays[0], arrays[1], arrays[-1]
        match probe.kind:
            case "read":
                return torch.dot, [(first, second)]
            case "copy":
                return last.copy_, [(first,)]
            case _:
                return lambda: torch.add(first, second, out=last), [()]

    def _drawn(self, format: str, *shape: int) -> Tensor:
        """Numbers as in a model: small, of both signs, the same every time; a block of them again and again."""
        torch, device, count = self._torch, self._device.name, math.prod(shape)
        generator = torch.Generator(device=device).manual_seed(0)
        if format == "int8":
            block = torch.randint(-127, 128, (min(count, BLOCK),), dtype=torch.int8, device=device, generator=generator)
        else:
            numbers = torch.randn(min(count, BLOCK), device=device, generator=generator) * 0.02
            block = numbers.to(getattr(torch, DTYPES[format]))
        return block.repeat(-(-count // BLOCK))[:count].view(shape)

    def _bytes(self, format: str) -> int:
        return int(getattr(self._torch, DTYPES[format]).itemsize)

    def _copies(self, set_bytes: float, *, is_cold: bool) -> int | Unsupported:
        device = self._device
        return num_copies(set_bytes, device.cache_bytes, device.free_bytes(), is_cold=is_cold)


def _not_in(format: str, known: Iterable[str]) -> Unsupported:
    return Unsupported(reason=f"PyTorch does this in {', '.join(known)}, not in {format}")

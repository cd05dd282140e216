"""A picture that is denoised: one device's kernels for its patch, and what a step of all devices takes.

Rows of the grid are dealt out in patches of one height. A device multiplies for its own positions only; its attention
reads as many positions as the technique lets it. Exchanges run beside the next step and only show where they take
longer than it; the first steps, when nothing is remembered yet, wait for them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from orrery.hardware.device import Device
from orrery.kernels.dispatch import predict
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm, Op
from orrery.models.denoiser import Convolution, Layer, TransformerLayer
from orrery.network.collective import Collective, predict_collective

ELEMENT_BYTES = 2.0

NORMS = 3
"""Norms of a transformer layer; a convolution has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is denoised, on what. ``num_guided`` pictures run at once: with the text and without it, where it guides."""

    layers: tuple[Layer, ...]
    height: int  # positions of the latent grid
    width: int
    num_guided: int
    num_text_tokens: int
    num_steps: int
    num_waiting_steps: int  # first steps, which wait for what the others send
    device: Device
    num_devices: int
    devices_per_node: int

    @property
    def transformers(self) -> list[TransformerLayer]:
        """The layers that attend."""
        return [layer for layer in self.layers if isinstance(layer, TransformerLayer)]

    @property
    def convolutions(self) -> list[Convolution]:
        """The layers that do not."""
        return [layer for layer in self.layers if isinstance(layer, Convolution)]

    def patch_tokens(self, shrink: int) -> int:
        """Tokens of one patch in a layer."""
        return max(1, ceil(self.height / shrink / self.num_devices)) * ceil(self.width / shrink)

    @property
    def cache_bytes(self) -> float:
        """Keys and values of one patch, all layers."""
        return sum(
            2.0 * t.width * self.patch_tokens(t.shrink) * self.num_guided * ELEMENT_BYTES for t in self.transformers
        )

    @property
    def border_bytes(self) -> float:
        """Rows at the two borders of one patch that neighbours' convolutions read, all layers."""
        return sum(
            2.0 * (c.kernel // 2) * ceil(self.width / c.shrink) * c.num_inputs * self.num_guided * ELEMENT_BYTES
            for c in self.convolutions
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Denoised:
    """A whole run, and one of its later steps."""

    time_s: float
    compute_s: float  # kernels of one step
    exchange_s: float  # of one step, beside them
    received_bytes: float  # by a device in one step, on average


def alone(picture: Picture) -> float:
    """Seconds of the whole run on one device; ``num_devices`` must be 1."""
    return picture.num_steps * kernels_s(picture, 1.0)


def denoised(picture: Picture, *, read_patches: float, exchange_s: float, received_bytes: float) -> Denoised:
    """The run: first steps with all of the context, waited for layer by layer; then steps beside their exchange."""
    compute_s = kernels_s(picture, read_patches)
    waiting_s = kernels_s(picture, picture.num_devices) + gathering_s(
        picture, picture.cache_bytes + picture.border_bytes, len(picture.layers)
    )
    steady_s = max(compute_s, exchange_s)
    waiting = min(picture.num_waiting_steps, picture.num_steps)
    return Denoised(
        time_s=waiting * waiting_s + (picture.num_steps - waiting) * steady_s,
        compute_s=compute_s,
        exchange_s=exchange_s,
        received_bytes=received_bytes,
    )


def gathering_s(picture: Picture, patch_bytes: float, num_calls: int) -> float:
    """Until every device has that many bytes of every patch, in so many calls."""
    whole = picture.num_devices * patch_bytes / num_calls
    return num_calls * _exchange_s(picture, "all_gather", picture.num_devices, whole)


def sending_s(picture: Picture, patch_bytes: float, num_calls: int) -> float:
    """Until the neighbours on both sides have that many bytes of a patch, in so many calls."""
    return num_calls * _exchange_s(picture, "send_recv", picture.num_devices, 2.0 * patch_bytes / num_calls)


def _exchange_s(picture: Picture, kind: str, num_devices: int, message_bytes: float) -> float:
    collective = Collective(
        kind=kind, num_devices=num_devices, message_bytes=message_bytes, devices_per_node=picture.devices_per_node
    )
    return float(predict_collective(collective, picture.device).time_s)


def kernels_s(picture: Picture, read_patches: float) -> float:
    """One step of one device whose attention reads so many patches."""
    return sum(float(np.sum(predict(op, picture.device).time_s)) for op in _ops(picture, read_patches))


def _ops(picture: Picture, read_patches: float) -> Iterator[Op]:
    """Products, norms and attention of a step, each with one entry a layer."""
    convolutions, guided = picture.convolutions, picture.num_guided
    tokens = np.array([guided * picture.patch_tokens(c.shrink) for c in convolutions], dtype=np.int64)
    outputs = np.array([c.num_outputs for c in convolutions], dtype=np.int64)
    depth = np.array([c.kernel**2 * c.num_inputs for c in convolutions], dtype=np.int64)
    yield Gemm(m=tokens, n=outputs, k=depth, format="fp16")
    yield Elementwise(kind="norm", tokens=tokens, width=outputs, format="fp16")
    if picture.transformers:
        yield from _attending(picture, read_patches)


def _attending(picture: Picture, read_patches: float) -> Iterator[Op]:
    """The transformer layers: products, three norms, attention to the picture and to the text."""
    layers, guided, text = picture.transformers, picture.num_guided, picture.num_text_tokens
    own = np.array([picture.patch_tokens(t.shrink) for t in layers], dtype=np.int64)
    width = np.array([t.width for t in layers], dtype=np.int64)
    heads = np.array([t.num_heads for t in layers], dtype=np.int64)
    ffn = np.array([t.ffn_size for t in layers], dtype=np.int64)
    first = np.array([t.ffn_inputs for t in layers], dtype=np.int64)
    for outputs, inputs in (
        (3 * width, width),
        (width, width),
        (width, width),
        (width, width),
        (first, width),
        (width, ffn),
    ):
        yield Gemm(m=guided * own, n=outputs, k=inputs, format="fp16")
    for _ in range(NORMS):
        yield Elementwise(kind="norm", tokens=guided * own, width=width, format="fp16")
    for context in (np.maximum(own, np.rint(own * read_patches).astype(np.int64)), np.full_like(own, text)):
        yield AttentionPrefill(
            batch=guided,
            query_tokens=own,
            context_tokens=context,
            num_heads=heads,
            num_kv_heads=heads,
            head_size=width // heads,
            format="fp16",
            kv_format="fp16",
            is_causal=False,
        )

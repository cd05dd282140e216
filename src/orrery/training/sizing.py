"""Which sizes of attention and feed-forward parts a device computes well: a ranking of layers by modelled efficiency.

Efficiency of a part is the operations of its forward and backward passes over what the device could do in the time
that they take::

    efficiency = 3 x 2 t (parameters + causal pairs) / (time x dense peak)

Products are timed as kernels are (tiles, waves and the memory roof), so sizes that fill the device stand out from their
neighbours. [anthony-2024], [anthony-2025]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.base.errors import ScenarioError
from orrery.execution.train.attention import BACKWARD_FLOPS_RATIO
from orrery.hardware.device import Device
from orrery.kernels.ops import AttentionPrefill, Gemm
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One layer: grouped-query attention and a feed-forward part of two matrices, or three where it is gated."""

    hidden_size: int
    ffn_size: int
    num_heads: int
    num_kv_heads: int
    head_size: int = 128
    is_gated: bool = True

    @property
    def num_attention_parameters(self) -> int:
        """Queries, keys, values and the way back."""
        return self.hidden_size * self.head_size * (2 * self.num_heads + 2 * self.num_kv_heads)

    @property
    def num_ffn_parameters(self) -> int:
        """All matrices of the feed-forward part."""
        return self.hidden_size * self.ffn_size * (3 if self.is_gated else 2)

    @property
    def num_parameters(self) -> int:
        """Parameters of the layer, without norms."""
        return self.num_attention_parameters + self.num_ffn_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A size and what the device makes of it: one layer, one micro-batch, forward and backward."""

    size: Size
    attention_s: float
    ffn_s: float
    attention_efficiency_frac: float
    ffn_efficiency_frac: float
    efficiency_frac: float

    @property
    def layer_s(self) -> float:
        """Both parts."""
        return self.attention_s + self.ffn_s


def rank_sizes(
    device: Device,
    sizes: Sequence[Size],
    *,
    seq_len: int,
    micro_batch: int = 1,
    tp: int = 1,
    format: str = "bf16",
    library: str = "",
) -> list[Ranked]:
    """All ``sizes``, the most efficient first; of equal ones the larger layer.

    Heads and the feed-forward part are cut ``tp`` ways. ``library`` names whose kernels (blank: the device's own).
    """
    if bad := [s for s in sizes if s.num_heads % tp or s.num_kv_heads % tp or s.ffn_size % tp]:
        raise ScenarioError(f"tp: {tp} does not divide the heads and the width of {bad[0]}; write a divisor.")
    if not sizes:
        return []
    tokens = micro_batch * seq_len
    attention, ffn = _shapes(sizes, tp)
    peak = device.peak_flops_per_s(get_format(format).rates)[1]
    linear_s, ffn_s = (_products_s(device, part, tokens, format, library) for part in (attention, ffn))
    core_s = _cores_s(device, sizes, seq_len, micro_batch, tp, format, library)
    attention_s = linear_s + core_s
    pairs = np.array([2.0 * s.num_heads * s.head_size * (seq_len + 1) / 2.0 for s in sizes]) / tp
    own = np.array([s.num_attention_parameters for s in sizes]) / tp
    attention_flops = 6.0 * tokens * (own + pairs)
    ffn_flops = 6.0 * tokens * np.array([s.num_ffn_parameters for s in sizes]) / tp
    found = [
        Ranked(
            size=size,
            attention_s=float(attention_s[i]),
            ffn_s=float(ffn_s[i]),
            attention_efficiency_frac=float(attention_flops[i] / attention_s[i] / peak),
            ffn_efficiency_frac=float(ffn_flops[i] / ffn_s[i] / peak),
            efficiency_frac=float((attention_flops[i] + ffn_flops[i]) / (attention_s[i] + ffn_s[i]) / peak),
        )
        for i, size in enumerate(sizes)
    ]
    return sorted(found, key=lambda r: (-r.efficiency_frac, -r.size.num_parameters))


Shapes = list[tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Outputs and inputs of each product, one entry a size."""


def _shapes(sizes: Sequence[Size], tp: int) -> tuple[Shapes, Shapes]:
    """Shapes of attention's two products, and of the feed-forward part's two."""
    hidden = np.array([s.hidden_size for s in sizes])
    heads = np.array([s.num_heads * s.head_size for s in sizes]) // tp
    keys = np.array([2 * s.num_kv_heads * s.head_size for s in sizes]) // tp
    width = np.array([s.ffn_size for s in sizes]) // tp
    up = width * np.array([2 if s.is_gated else 1 for s in sizes])
    return [(heads + keys, hidden), (hidden, heads)], [(up, hidden), (hidden, width)]


def _products_s(device: Device, shapes: Shapes, tokens: int, format: str, library: str) -> Floats:
    """y = x W^T, dx = dy W and dW = dy^T x of every product."""
    total = np.zeros(shapes[0][0].shape)
    for n, k in shapes:
        t = np.full_like(n, tokens)
        m, n3, k3 = np.stack([t, t, n]), np.stack([n, k, k]), np.stack([k, n, t])
        op = Gemm(m=m, n=n3, k=k3, format=format, quantises_input=False)
        total = total + kernels.predict(op, device, library).time_s.sum(axis=0)
    return total


def _cores_s(
    device: Device, sizes: Sequence[Size], seq_len: int, micro_batch: int, tp: int, format: str, library: str
) -> Floats:
    """Causal attention, forward and backward with a fused kernel."""
    out = np.zeros(len(sizes))
    for i, s in enumerate(sizes):
        op = AttentionPrefill(
            batch=np.array([micro_batch]),
            query_tokens=seq_len,
            context_tokens=seq_len,
            num_heads=np.array([s.num_heads // tp]),
            num_kv_heads=np.array([s.num_kv_heads // tp]),
            head_size=s.head_size,
            value_head_size=s.head_size,
            format=format,
            kv_format=format,
            is_causal=True,
        )
        out[i] = (1.0 + BACKWARD_FLOPS_RATIO) * float(kernels.predict(op, device, library).time_s[0])
    return out


def sizes_of(
    num_parameters: float,
    *,
    head_sizes: Sequence[int] = (128,),
    heads_per_kv: int = 1,
    ffn_ratios: Sequence[float] = (2.0, 2.667, 3.5, 4.0),
    multiple: int = 64,
    is_gated: bool = True,
    most_hidden: int = 32768,
) -> Iterator[Size]:
    """Layers of about so many parameters: for each size of heads and each ratio of widths, the nearest hidden size.

    Hidden sizes are whole groups of heads (``heads_per_kv`` queries share keys), feed-forward widths multiples of
    ``multiple``.
    """
    for head in head_sizes:
        for ratio in ffn_ratios:
            fits: list[Size] = []
            for hidden in range(head * heads_per_kv, most_hidden + 1, head * heads_per_kv):
                heads = hidden // head
                size = Size(
                    hidden_size=hidden,
                    ffn_size=max(multiple, round(ratio * hidden / multiple) * multiple),
                    num_heads=heads,
                    num_kv_heads=heads // heads_per_kv,
                    head_size=head,
                    is_gated=is_gated,
                )
                fits.append(size)
                if size.num_parameters > num_parameters:
                    break
            yield min(fits, key=lambda s: abs(s.num_parameters - num_parameters))

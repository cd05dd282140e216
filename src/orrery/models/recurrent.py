"""Layers that keep a fixed state per sequence instead of a cache: projections, convolution, recurrence.

``flops_per_token`` counts the recurrence and the convolution on a state of n elements: a multiply-add is two, one pass
over the state for each of decay (n), what comes in (2n), and what is read (2n); the delta rule reads once more before
it writes (2n). Mamba 1 also makes its decay from A and dt for every element (n and an exponential, counted as n).
"""

from dataclasses import replace

from orrery.models.model import Linear, RecurrentMixer
from orrery.models.parts import Part


def _mixer_linear(name: str, inputs: int, outputs: int, shard_row: bool = False, bias: bool = False) -> Linear:
    return Linear(
        name=name,
        in_features=inputs,
        out_features=outputs,
        shard="row" if shard_row else "column",
        role="mixer",
        has_bias=bias,
    )


def _recurrence(kind: str, heads: int, state: int, channels: int, kernel: int, passes: int) -> RecurrentMixer:
    """``channels`` elements of a token enter; ``kernel`` 0: no convolution. ``passes``: flops an element of state."""
    return RecurrentMixer(
        kind=kind,
        num_heads=heads,
        state_elements=state,
        conv_elements=channels * max(kernel - 1, 0),
        flops_per_token=float(passes * state + 2 * kernel * channels),
        width=channels,
    )


def gated_delta_net(hidden: int, key_heads: int, value_heads: int, key_size: int, value_size: int, kernel: int) -> Part:
    """Qwen3-Next's linear attention: q, k, v and an output gate, a decay and a step a head, a short convolution."""
    keys, values = key_heads * key_size, value_heads * value_size
    channels = 2 * keys + values
    return Part(
        linears=(
            _mixer_linear("in_qkvz", hidden, channels + values),
            _mixer_linear("in_ba", hidden, 2 * value_heads),
            _mixer_linear("out", values, hidden, shard_row=True),
        ),
        mixer=_recurrence("gated-delta-net", value_heads, value_heads * key_size * value_size, channels, kernel, 7),
        other_parameters=channels * kernel + 2 * value_heads + value_size,
        norm_elements=values,
    )


def kimi_delta(
    hidden: int, heads: int, size: int, kernel: int, *, has_full_gate: bool = False, has_full_decay: bool = False
) -> Part:
    """Kimi's delta attention: a decay for every channel and an output gate, each through a narrow pair of products.

    ``has_full_gate`` and ``has_full_decay``: through one product instead.
    """
    width = heads * size
    decay = (
        [_mixer_linear("decay", hidden, width)]
        if has_full_decay
        else [_mixer_linear("decay_a", hidden, size), _mixer_linear("decay_b", size, width)]
    )
    gate = (
        [_mixer_linear("gate", hidden, width)]
        if has_full_gate
        else [_mixer_linear("gate_a", hidden, size), _mixer_linear("gate_b", size, width)]
    )
    return Part(
        linears=(
            _mixer_linear("in_qkv", hidden, 3 * width),
            *decay,
            _mixer_linear("in_b", hidden, heads),
            *gate,
            _mixer_linear("out", width, hidden, shard_row=True),
        ),
        mixer=_recurrence("kimi-delta", heads, heads * size * size, 3 * width, kernel, 7),
        other_parameters=3 * width * kernel + width + heads + size,
        norm_elements=width,
    )


def lightning(hidden: int, heads: int, size: int) -> Part:
    """MiniMax's lightning attention: linear attention with a fixed decay a head and an output gate."""
    width = heads * size
    return Part(
        linears=(
            _mixer_linear("in_qkv", hidden, 3 * width),
            _mixer_linear("gate", hidden, width),
            _mixer_linear("out", width, hidden, shard_row=True),
        ),
        mixer=_recurrence("lightning", heads, heads * size * size, 3 * width, 0, 5),
        other_parameters=width,
        norm_elements=width,
    )


def mamba2(
    hidden: int,
    heads: int,
    head_size: int,
    state_size: int,
    num_groups: int,
    kernel: int,
    *,
    conv_bias: bool = True,
    bias: bool = False,
    has_norm: bool = True,
) -> Part:
    """Mamba 2: gate, input, B, C and dt in one product, a convolution, one decay a head, a gated norm."""
    inner = heads * head_size
    channels = inner + 2 * num_groups * state_size
    return Part(
        linears=(
            _mixer_linear("in", hidden, inner + channels + heads, bias=bias),
            _mixer_linear("out", inner, hidden, shard_row=True, bias=bias),
        ),
        mixer=_recurrence("mamba2", heads, inner * state_size, channels, kernel, 5),
        other_parameters=channels * (kernel + conv_bias) + 3 * heads + inner * has_norm,
        norm_elements=inner * has_norm,
    )


def mamba1(
    hidden: int,
    inner: int,
    state_size: int,
    rank: int,
    kernel: int,
    *,
    conv_bias: bool = True,
    bias: bool = False,
    has_norms: bool = False,
) -> Part:
    """Mamba 1: input and gate, a convolution, then dt (through ``rank``), B and C from the convolved input."""
    narrow = rank + 2 * state_size
    return Part(
        linears=(
            _mixer_linear("in", hidden, 2 * inner, bias=bias),
            _mixer_linear("x", inner, narrow, shard_row=True),
            _mixer_linear("dt", rank, inner, bias=True),
            _mixer_linear("out", inner, hidden, shard_row=True, bias=bias),
        ),
        mixer=_recurrence("mamba1", inner, inner * state_size, inner, kernel, 7),
        other_parameters=inner * (kernel + conv_bias) + inner * state_size + inner + narrow * has_norms,
        norm_elements=narrow * has_norms,
    )


PROGRAM_CHANNELS = 64
"""Channels of a vector that one program of the recurrence takes: they do not meet, so they can be cut anywhere."""


def short_convolution(hidden: int, kernel: int, *, bias: bool = False) -> Part:
    """LFM2's operator: one product makes input and two gates; a short convolution runs between the gates.

    Nothing decays: the state is the last inputs of the convolution. A gate is one operation an element.
    """
    mixer = _recurrence("short-convolution", max(1, hidden // PROGRAM_CHANNELS), 0, hidden, kernel, 0)
    return Part(
        linears=(
            _mixer_linear("in", hidden, 3 * hidden, bias=bias),
            _mixer_linear("out", hidden, hidden, shard_row=True, bias=bias),
        ),
        mixer=replace(mixer, flops_per_token=mixer.flops_per_token + 2.0 * hidden, width=3 * hidden),
        other_parameters=hidden * (kernel + bias),
    )


def gated_vector(hidden: int, inner: int, kernel: int, *, has_shared_kernel: bool) -> Part:
    """HGRN's recurrence: a vector a sequence that decays and takes in element by element, and an output gate.

    A step multiplies by the decay, gates what comes in with its complement (two) and adds: four operations an element.
    Candidate, decay and output gate are products of their own, since each rounds its input for itself. A short
    convolution (``kernel`` 0: none) runs on the layer's input (``has_shared_kernel``), or on each of the three.
    """
    channels = hidden if has_shared_kernel else 3 * inner
    programs = max(1, inner // PROGRAM_CHANNELS)
    mixer = _recurrence("gated-vector", programs, inner, 2 * inner, 0, 4)
    convolution = {"conv_elements": channels * (kernel - 1)} if kernel else {}
    return Part(
        linears=(
            *(_mixer_linear(name, hidden, inner) for name in ("in_candidate", "in_decay", "gate")),
            _mixer_linear("out", inner, hidden, shard_row=True),
        ),
        mixer=replace(mixer, flops_per_token=mixer.flops_per_token + 2.0 * kernel * channels, **convolution),
        other_parameters=channels * kernel + inner,
        norm_elements=inner,
    )

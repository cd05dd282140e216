"""The inner loop of the recurrent rule: the convolution in front, then the recurrence; one kernel after the other.

convolution  every element in and out once:    norm(launch, bytes / rate)
decode       state read and written once:       norm(launch, bytes / rate)
prefill      state in and out, tokens streamed; the chunks of one sequence and head follow each other, and heads that
             find no unit wait for the next wave:
             norm(launch, norm(bytes of state / rate + bytes of tokens / rate, chunks waves step))

norm(a, b) is (a^p + b^p)^(1/p). What the last-level cache still holds from the last repetition is read faster.
"""

import math

import numpy as np

from orrery.base.compiled import Floats, Floats2, compiled

PREFILL = ("overhead_s", "state_frac", "token_frac", "step_s", "overlap_power", "chain_power", "cache_ratio")
DECODE = ("overhead_s", "state_frac", "overlap_power", "cache_ratio")
CONVOLUTION = ("overhead_s", "token_frac", "overlap_power", "cache_ratio")
MACHINE = ("flops", "bandwidth", "units", "cache")

TIME, COMPUTE, MEMORY, OVERHEAD, FLOPS, BYTES = range(6)
COLUMNS = 6

SIXTEEN_BIT_BYTES = 2.0

CHUNK_TOKENS = 64.0
"""Tokens of a chunk in the kernels that were measured (flash-linear-attention, FlashInfer)."""


STREAM_EDGE, STATE_EDGE = 2.0, 4.0
"""Sharpness with which a loop stops finding its bytes in the cache: states that are read in one sweep are all there or
none.
"""


def _norm(a: float, b: float, power: float) -> float:
    """(a^power + b^power)^(1/power), exact under a change of unit."""
    high, low = max(a, b), min(a, b)
    if high <= 0.0:
        return 0.0
    return high * (1.0 + (low / high) ** power) ** (1.0 / power)


def _found(held: float, cache: float, ratio: float, is_cold: bool, edge: float) -> float:
    """The share of its bytes' time that a repeated kernel waits, ``held`` bytes beside a cache of ``cache``.

    A higher ``edge`` is a sharper border between what fits and what does not.
    """
    if is_cold or cache <= 0.0:
        return 1.0
    hit = 1.0 / (1.0 + (held / cache) ** edge)
    return 1.0 - hit + hit / ratio


def prefill_s(
    tokens: float,
    sequences: float,
    state_bytes: float,
    width: float,
    heads: float,
    is_cold: bool,
    c: Floats,
    machine: Floats,
) -> tuple[float, float]:
    """The recurrence over prompts: seconds, and how much of it is the launch."""
    moved = 2.0 * state_bytes * sequences / c[1] + 2.0 * tokens * width * SIXTEEN_BIT_BYTES / c[2]
    held = state_bytes * sequences + 2.0 * tokens * width * SIXTEEN_BIT_BYTES
    stream = moved / machine[1] * _found(held, machine[3], c[6], is_cold, STREAM_EDGE)
    waves = math.ceil(sequences * heads / machine[2])
    chain = c[3] * math.ceil(tokens / sequences / CHUNK_TOKENS) * waves
    work = _norm(stream, chain, c[5])
    time = _norm(c[0], work, c[4])
    return time, time - work


def decode_s(sequences: float, state_bytes: float, is_cold: bool, c: Floats, machine: Floats) -> tuple[float, float]:
    """One token for every sequence: seconds, and how much of it is the launch."""
    held = state_bytes * sequences
    work = 2.0 * held / (c[1] * machine[1]) * _found(held, machine[3], c[3], is_cold, STATE_EDGE)
    time = _norm(c[0], work, c[2])
    return time, time - work


def convolution_s(moved: float, is_cold: bool, c: Floats, machine: Floats) -> tuple[float, float]:
    """A short convolution that moves so many bytes: seconds, and how much of it is the launch."""
    work = moved / (c[1] * machine[1]) * _found(moved, machine[3], c[3], is_cold, STREAM_EDGE)
    time = _norm(c[0], work, c[2])
    return time, time - work


def _one(
    tokens: float,
    sequences: float,
    state: float,
    flops_each: float,
    width: float,
    heads: float,
    conv_state: float,
    state_size: float,
    is_decode: bool,
    is_cold: bool,
    recurrence: Floats,
    convolution: Floats,
    machine: Floats,
    out: Floats,
) -> None:
    """Fill ``out`` for one layer."""
    if tokens <= 0.0:
        for column in range(COLUMNS):
            out[column] = 0.0
        return
    state_bytes = state * state_size
    streamed = 2.0 * tokens * width * SIXTEEN_BIT_BYTES
    if is_decode:
        time, launch = decode_s(sequences, state_bytes, is_cold, recurrence, machine)
    else:
        time, launch = prefill_s(tokens, sequences, state_bytes, width, heads, is_cold, recurrence, machine)
    moved = 2.0 * state_bytes * sequences + streamed
    if conv_state > 0.0:
        states = 2.0 * conv_state * SIXTEEN_BIT_BYTES * sequences
        more, launch_too = convolution_s(streamed + states, is_cold, convolution, machine)
        time, launch, moved = time + more, launch + launch_too, moved + states
    out[TIME], out[OVERHEAD] = time, launch
    out[FLOPS], out[BYTES] = tokens * flops_each, moved
    out[COMPUTE], out[MEMORY] = out[FLOPS] / machine[0], moved / machine[1]


@compiled
def scalar(
    tokens: float,
    sequences: float,
    state: float,
    flops_each: float,
    width: float,
    heads: float,
    conv_state: float,
    state_size: float,
    is_decode: bool,
    is_cold: bool,
    recurrence: Floats,
    convolution: Floats,
    machine: Floats,
) -> Floats:
    """One layer; returns the columns."""
    out: Floats = np.empty(COLUMNS)
    _one(
        tokens,
        sequences,
        state,
        flops_each,
        width,
        heads,
        conv_state,
        state_size,
        is_decode,
        is_cold,
        recurrence,
        convolution,
        machine,
        out,
    )
    return out


@compiled
def many(
    tokens: Floats,
    sequences: Floats,
    state: Floats,
    flops_each: Floats,
    width: Floats,
    heads: Floats,
    conv_state: Floats,
    state_size: float,
    is_decode: bool,
    is_cold: bool,
    recurrence: Floats,
    convolution: Floats,
    machine: Floats,
    out: Floats2,
) -> None:
    """Many layers, a line of ``out`` each."""
    for i in range(tokens.size):
        _one(
            tokens[i],
            sequences[i],
            state[i],
            flops_each[i],
            width[i],
            heads[i],
            conv_state[i],
            state_size,
            is_decode,
            is_cold,
            recurrence,
            convolution,
            machine,
            out[i],
        )

# pyright: basic
"""The inner loop of the recurrent rule.

decode    state read and written once a token:   (launch^p + (bytes / (bandwidth W))^p)^(1/p)
prefill   chunked scan: operations at a share of the matrix rate, met by what streams through;
          a chunk's state is carried on ``tokens / (sequences chunk)`` times in a row
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CONSTANTS = ("overhead_s", "bandwidth_frac", "peak_frac", "step_s", "overlap_power", "chunk_tokens")
MACHINE = ("flops", "bandwidth")

TIME, COMPUTE, MEMORY, OVERHEAD, FLOPS, BYTES = range(6)
COLUMNS = 6

SIXTEEN_BIT_BYTES = 2.0


@njit(cache=True)
def _norm(a, b, power):
    """(a^power + b^power)^(1/power), exact under a change of unit."""
    high, low = max(a, b), min(a, b)
    if high <= 0.0:
        return 0.0
    return high * (1.0 + (low / high) ** power) ** (1.0 / power)


@njit(cache=True)
def _one(tokens, sequences, state, flops_each, width, state_bytes, is_decode, constants, machine, out):
    """Fill ``out`` for one layer's recurrence."""
    overhead, bandwidth, peak, step, power, chunk = (
        constants[0], constants[1], constants[2], constants[3], constants[4], constants[5],
    )  # fmt: skip
    if tokens <= 0.0:
        for column in range(COLUMNS):
            out[column] = 0.0
        return
    chunks = tokens if is_decode else np.ceil(tokens / (sequences * chunk)) * sequences
    touched = sequences if is_decode else max(sequences, chunks)
    moved = 2.0 * state * state_bytes * touched + 2.0 * tokens * width * SIXTEEN_BIT_BYTES
    least = 2.0 * state * state_bytes * sequences + 2.0 * tokens * width * SIXTEEN_BIT_BYTES
    out[FLOPS], out[BYTES] = tokens * flops_each, least
    out[COMPUTE], out[MEMORY] = out[FLOPS] / machine[0], least / machine[1]
    stream = moved / (bandwidth * machine[1])
    work = stream
    if not is_decode:
        work = _norm(stream, out[FLOPS] / (peak * machine[0]), power) + step * chunks / sequences
    time = _norm(work, overhead, power)
    out[TIME], out[OVERHEAD] = time, time - work


@njit(cache=True)
def scalar(
    tokens: float,
    sequences: float,
    state: float,
    flops_each: float,
    width: float,
    state_bytes: float,
    is_decode: bool,
    constants: Floats,
    machine: Floats,
) -> Floats:
    """One layer; returns the columns."""
    out = np.empty(COLUMNS)
    _one(tokens, sequences, state, flops_each, width, state_bytes, is_decode, constants, machine, out)
    return out


@njit(cache=True)
def many(
    tokens: Floats,
    sequences: Floats,
    state: Floats,
    flops_each: Floats,
    width: Floats,
    state_bytes: float,
    is_decode: bool,
    constants: Floats,
    machine: Floats,
    out: Floats,
) -> None:
    """Many layers, a line of ``out`` each."""
    for i in range(tokens.size):
        _one(
            tokens[i], sequences[i], state[i], flops_each[i], width[i], state_bytes, is_decode, constants, machine,
            out[i],
        )  # fmt: skip

"""Attention of encoders (vision towers, BERT): whole sequences without a mask, by kernels of their own.

The law is prefill's. Kernels are built for some sizes of heads, and pad others: to whole sixteens, or (Triton's)
to the next power of two, so that heads of 80 take what 128 takes; ``size_granule`` says which. Heads that are no whole
sixteens (72) some libraries hand to another, slower kernel; ``odd_granule`` then counts them as wide as 256, which no
encoder has, so that the rate of that size is theirs alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.attention import _kernel as kernel
from orrery.kernels.attention import prefill
from orrery.kernels.attention.choice import choose
from orrery.kernels.attention.features import _kernel as features_kernel
from orrery.kernels.attention.learned import Ready, corrected, ready_for
from orrery.kernels.columns import flat_columns, timing
from orrery.kernels.ops import AttentionPrefill, Floats, Size, Timing

OP = "attention_encoder"

WIDEST = 80
"""Heads that were measured: 64, 72 and 80. Wider ones are left to prefill's constants."""

HEAD_SIZE, VALUE_SIZE = (prefill.COLUMNS.index(name) for name in ("head_size", "value_head_size"))


def serves(op: AttentionPrefill) -> bool:
    """Whether ``op``, which has no causal mask, is an encoder's of a kind that was measured."""
    if np.max(op.head_size) > WIDEST or np.any(op.window_tokens):
        return False
    return op.query_tokens is op.context_tokens or np.array_equal(op.query_tokens, op.context_tokens)


def vector(constants: Mapping[str, float]) -> Floats:
    """Prefill's constants in the kernel's order, and behind them the granules, which the kernel does not read."""
    return np.append(prefill.vector(constants), [constants["size_granule"], constants["odd_granule"]])


def padded(columns: Sequence[Size], constants: Floats) -> list[Size]:
    """The columns with heads as wide as the kernel computes them."""
    even, odd = (int(granule) for granule in constants[-2:])
    out = list(columns)
    for i in (HEAD_SIZE, VALUE_SIZE):
        size = np.asarray(columns[i])
        granule = np.where(size % 16 == 0, even, odd)
        out[i] = -(-size // granule) * granule
    return out


@lru_cache(maxsize=1024)
def _ready(device: Device, format: str, kv_format: str, engine: str) -> Ready:
    choice = choose(device, OP, format, kv_format, engine)
    constants = vector(choice.calibration.constants)
    machine = prefill.machine(device, choice)
    return ready_for(choice.calibration, machine, constants, prefill.COLUMNS, features_kernel.PREFILL_FEATURES)


def calibration(op: AttentionPrefill, device: Device, engine: str = "") -> Calibration:
    """Calibration that ``op`` is predicted with: constants and their spread."""
    return _ready(device, op.format, op.kv_format, engine).calibration


def predict(op: AttentionPrefill, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device``: of padded heads; operations and bytes are of the heads themselves."""
    ready = _ready(device, op.format, op.kv_format, engine)
    shape, columns = flat_columns(prefill.sizes_of(op), np.int64)
    wide, fixed = padded(columns, ready.constants), (False, ready.machine, ready.constants)
    if ready.trees is None:
        rows = kernel.prefill(*wide, *fixed)
    else:
        rows = corrected(features_kernel.prefill_features, fixed, ready.trees, wide, ready.within)
    own = kernel.prefill(*columns, *fixed)
    own[0], own[3] = np.maximum(rows[0], own[1]), rows[3]
    found = timing(own, shape)
    return found if shape else _scalar(found)


def _scalar(found: Timing) -> Timing:
    """Numbers for numbers, as every rule returns them."""
    names = ("time_s", "compute_s", "memory_s", "overhead_s", "flops", "bytes")
    return replace(found, **{name: getattr(found, name)[()] for name in names})

"""Inputs taken from the user's own tensors: blocks that need eight bits, error of eight-bit attention."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.user_file import user_path
from orrery.numerics.arithmetic.attention import AttentionFormat, attention, rms_error, rounded_attention
from orrery.numerics.arithmetic.channel_blocks import BlockKnobs, clustered_order, wide_blocks
from orrery.numerics.rotations.hadamard import matrix, signs
from orrery.scenario.tensor_file import tensors_in

MAX_QUERIES, MAX_SCORES = 256, 2**26
"""Queries of a head that errors are taken over, the first ones; and scores of all of them."""

BLOCK_ROWS = 128
"""Rows that share a scale: the kernel's tile (FlashAttention-3, section 3.3)."""

Array = NDArray[Any]


@lru_cache(maxsize=4)
def _read(path: Path) -> Mapping[str, Array]:
    return {tensor.name: tensor.read() for tensor in tensors_in(path)}


def wide_frac(file: str, block_elements: int) -> float:
    """Share of channel blocks of (tokens, channels) activations that hold an outlier, channels sorted by size."""
    name, x = next(iter(_read(user_path(file)).items()))
    if x.ndim != 2:
        raise ScenarioError(f"tensors: {name} of {file} has shape {x.shape}; write activations of (tokens, channels).")
    knobs = BlockKnobs(block_elements=min(block_elements, x.shape[1]))
    return float(wide_blocks(x[:, clustered_order(x, knobs)], knobs).mean())


def attention_errors(file: str) -> dict[str, float]:
    """Root mean square error of eight-bit attention on q, k and v of a file: a scale a tensor, a block, and rotated."""
    found = _read(user_path(file))
    if missing := [name for name in ("q", "k", "v") if name not in found]:
        raise ScenarioError(f"tensors: {file} lacks {', '.join(missing)}; write an .npz with q, k and v.")
    q, k, v = (found[name] if found[name].ndim == 3 else found[name][None] for name in ("q", "k", "v"))
    if not (q.ndim == k.ndim == 3 and k.shape == v.shape and q.shape[::2] == k.shape[::2]):
        raise ScenarioError(
            f"tensors: got q {q.shape}, k {k.shape}, v {v.shape}; write (tokens, features) each, or (heads, tokens, "
            "features), with as many heads and features."
        )
    q = q[:, :MAX_QUERIES]
    if q.shape[0] * q.shape[1] * k.shape[1] > MAX_SCORES:
        raise ScenarioError(f"tensors: {file} makes more than {MAX_SCORES:,} scores; write fewer heads or keys.")
    size = q.shape[-1]
    is_power = size & (size - 1) == 0
    exact = attention(q, k, v)
    tensor, block = AttentionFormat(), AttentionFormat(block_rows=BLOCK_ROWS)
    errors = {
        "rmse_scale_a_tensor": rms_error(exact, rounded_attention(q, k, v, tensor)),
        "rmse_scale_a_block": rms_error(exact, rounded_attention(q, k, v, block)),
    }
    if is_power:
        rotation = signs(size, 0)[:, None] * matrix(size)
        errors["rmse_scale_a_block_rotated"] = rms_error(exact, rounded_attention(q, k, v, block, rotation))
    return errors

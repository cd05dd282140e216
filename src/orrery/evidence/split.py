"""Which rows may be used for what: 20 % to fit, 20 % to calibrate intervals, 60 % to test, by a hash of the shape.

The hash is of the words that identify a weight shape, layer or model, so no shape stands on two sides, and the
same shape is on the same side in every table, on every machine, for ever.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.evidence.tables import Table

SHAPE_COLUMNS: dict[str, tuple[str, ...]] = {
    "gemm": ("n", "k"),
    "attention_prefill": ("num_heads", "num_kv_heads", "head_size", "window_tokens"),
    "attention_encoder": ("num_heads", "head_size"),
    "attention_decode": ("num_heads", "num_kv_heads", "head_size", "window_tokens"),
    "mla_prefill": ("num_heads", "batch"),
    "mla_decode": ("num_heads", "batch"),
    "mla_absorb_query": ("batch",),
    "mla_absorb_value": ("batch",),
    "moe": ("hidden_size", "ffn_size", "num_experts", "experts_per_token", "tp", "ep"),
    "elementwise": ("op", "tokens", "width"),
    "collective": ("collective", "num_devices", "message_bytes"),
    "moe_dispatch": ("hidden_size", "num_experts", "experts_per_token"),
    "serving": ("model", "num_devices"),
    "training": ("model", "num_layers", "hidden_size", "num_devices"),
}
"""Columns that identify a shape, by op or kind of table."""

LIKE = {
    "grouped_gemm": "gemm",
    **dict.fromkeys(("norm", "rope", "gated_activation", "add", "embedding", "softmax"), "elementwise"),
    **dict.fromkeys(("moe_combine", "moe_prepare"), "moe_dispatch"),
}
"""Ops whose shapes are another's."""

FIT, CALIBRATE, TEST = "fit", "calibrate", "test"


def side(words: Sequence[str]) -> str:
    """The side on which a shape stands."""
    digest = hashlib.sha256("|".join(words).encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return FIT if share < 0.2 else CALIBRATE if share < 0.4 else TEST


def sides(table: Table, what: str) -> NDArray[np.str_]:
    """The side of every row of a table whose rows are all of one op or kind."""
    columns = [table.words(c) for c in SHAPE_COLUMNS[what]]
    known: dict[tuple[str, ...], str] = {}
    out: list[str] = []
    for row in zip(*columns, strict=True):
        words = tuple(str(w) for w in row)
        if words not in known:
            known[words] = side(words)
        out.append(known[words])
    return np.array(out)


def sides_of(table: Table) -> NDArray[np.str_]:
    """The side of every row of a table of any kinds, by what its op, collective or kind calls a shape.

    Rows of ops whose shapes were never divided are on the side of tests.
    """
    kinds, collectives = table.words("kind"), table.words("collective")
    ops = np.where(kinds == "kernel", table.words("op"), kinds)
    is_exchange = np.array([LIKE.get(str(c), str(c)) == "moe_dispatch" for c in collectives], dtype=np.bool_)
    ops = np.where(is_exchange, "moe_dispatch", ops)
    out = np.full(len(table), TEST, dtype="U9")
    for op in np.unique(ops):
        what = LIKE.get(str(op), str(op))
        if what in SHAPE_COLUMNS:
            rows = np.flatnonzero(ops == op)
            out[rows] = sides(table.take(rows), what)
    return out

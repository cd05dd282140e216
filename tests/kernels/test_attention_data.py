"""Medians on the test rows of the measured tables must not get worse; a sample of the rows, so that it stays fast."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.evidence.split import TEST, sides
from orrery.evidence.tables import Table, read_table
from orrery.kernels.attention import predict_decode, predict_prefill
from orrery.kernels.ops import AttentionDecode, AttentionPrefill

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[2] / ".." / "shared" / "data")) / "kernels"
EVERY = 5  # of the test rows

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no measured tables in {DATA}; set ORRERY_DATA")


@cache
def sample_of(op: str) -> Table:
    """Every fifth test row of an op's table."""
    table = read_table(DATA / f"{op}.csv.gz")
    return table.take(np.flatnonzero(sides(table, op) == TEST)[::EVERY])


def errors(op: str, *, learned: bool) -> np.ndarray:
    """|predicted / measured - 1| of the sample."""
    table = sample_of(op)
    keys = list(zip(*(table.words(c).tolist() for c in ("device", "format", "kv_format", "engine")), strict=True))
    sizes = {
        name: np.nan_to_num(table.numbers(name)).astype(np.int64)
        for name in (
            "batch",
            "context_tokens",
            "num_heads",
            "num_kv_heads",
            "head_size",
            "window_tokens",
            "query_tokens",
        )
    }
    out = np.empty(len(table))
    for key in set(keys):
        rows = np.array([k == key for k in keys])
        here = {name: column[rows] for name, column in sizes.items()}
        device, formats = get_device(key[0]), {"format": key[1], "kv_format": key[2]}
        if op == "attention_prefill":
            timing = predict_prefill(AttentionPrefill(**here, **formats), device, key[3], learned)
        else:
            timing = predict_decode(AttentionDecode(**here, **formats, is_cold=False), device, key[3], learned)
        out[rows] = np.abs(timing.time_s / table.numbers("time_s")[rows] - 1)
    return out


@pytest.mark.parametrize(
    ("op", "physics", "with_trees"), [("attention_prefill", 0.061, 0.030), ("attention_decode", 0.083, 0.048)]
)
def test_medians_hold(op: str, physics: float, with_trees: float) -> None:
    """A little above what docs/models/attention.md states for all rows."""
    assert np.median(errors(op, learned=False)) < physics
    assert np.median(errors(op, learned=True)) < with_trees

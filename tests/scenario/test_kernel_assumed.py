"""Rows on a roof that no source states say how far their time hangs on it."""

import pytest

import orrery
from orrery.catalog.devices import get_device


def test_a_board_of_no_stated_arithmetic_has_a_range():
    answer = orrery.kernel(op="chain", device="alveo-u280", chain="512x768x3072x768")
    row = next(row for row in answer.rows if row.variant == "sequential")
    found = next(note for note in answer.notes if note.startswith("sequential: dense_fp16_flops_per_s"))
    # all of it is arithmetic: half the time with twice the rate, twice the time with half
    assert row.time_s == pytest.approx(row.roofs_s["compute"], rel=0.01)
    assert f"{row.time_s * 500:.3g} to {row.time_s * 2000:.3g} ms" in found
    assert get_device("alveo-u280").facts["memory_bandwidth_bytes_per_s"].source is not None


def test_stated_roofs_have_none():
    assert not [
        n for n in orrery.kernel(op="gather", device="a100-sxm-80gb", tokens=1000, width=128).notes if "assumed" in n
    ]

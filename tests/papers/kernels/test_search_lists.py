"""Searches among vectors: roofs by hand, and what probes and shards change."""

import pytest

from orrery_papers.faiss_gpu.lists import InvertedLists, SearchDevice

DEVICE = SearchDevice(flops_per_s=1e12, bandwidth_bytes_per_s=1e11, num_lookups_per_s=1e11)
INDEX = InvertedLists(num_vectors=1e6, num_features=32, num_lists=1000, code_bytes=8)


def test_all_distances_are_a_row_of_a_product_written_and_read():
    assert DEVICE.all_distances_s(1e6, 128) == pytest.approx(2 * 128e6 / 1e12 + 8e6 / 1e11)


def test_a_probed_list_costs_its_table_and_its_codes():
    assert INDEX.table_s(DEVICE) == pytest.approx(2 * 256 * 32 / 1e12 + 8 * 256 * 8 / 1e11)
    assert INDEX.scan_s(DEVICE, 1.0) == pytest.approx(8000 / 1e11 + 8 * 1000 / 1e11)
    assert INDEX.query_s(DEVICE, 4) - INDEX.query_s(DEVICE, 3) == pytest.approx(
        INDEX.table_s(DEVICE) + INDEX.scan_s(DEVICE, 1.0)
    )


def test_shards_share_codes_and_not_centres():
    none, half, whole = (INDEX.query_s(DEVICE, 10, frac) for frac in (0.0, 0.5, 1.0))
    assert half == pytest.approx((none + whole) / 2)
    assert none > DEVICE.all_distances_s(INDEX.num_lists, INDEX.num_features)


def test_slow_look_ups_bind():
    slow = SearchDevice(flops_per_s=1e12, bandwidth_bytes_per_s=1e11, num_lookups_per_s=1e10)
    assert INDEX.scan_s(slow, 1.0) == pytest.approx(8000 / 1e10 + 8000 / 1e11)

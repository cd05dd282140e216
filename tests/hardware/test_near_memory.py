"""Processors near the memory: which takes what, and products inside DRAM banks."""

import pytest

from orrery.base.errors import OutOfRange
from orrery.hardware.banked_memory import BankedMemory
from orrery.hardware.roofs import Roofs, shared_s

FAR, NEAR = Roofs(flops_per_s=1000e12, bytes_per_s=3e12), Roofs(flops_per_s=96e12, bytes_per_s=12e12)


BANKS = BankedMemory(
    num_channels=8,
    num_banks=16,
    column_bytes=32.0,
    column_s=1e-9,
    row_bytes=2048.0,
    open_s=10e-9,
    close_s=10e-9,
    channel_bytes_per_s=32e9,
    open_j=1e-9,
    read_j_per_bytes=1e-11,
    pin_j_per_bytes=1e-11,
)


def test_sharing_is_never_slower_than_the_faster_one():
    for flops in (1e9, 32e9, 300e9):
        alone = min(NEAR.time_s(flops, 1e9), FAR.time_s(flops, 1e9))
        assert 0.5 * alone <= shared_s(NEAR, FAR, flops, 1e9) < alone
    assert shared_s(NEAR, FAR, 0.0, 0.0) == 0.0


def test_banks_read_far_more_than_the_pins_carry():
    assert BANKS.pins_bytes_per_s == pytest.approx(256e9)
    over_pins_s = 2048 * 4096 * 2.0 / BANKS.pins_bytes_per_s
    assert over_pins_s / 16 < BANKS.product_s(2048, 4096) < over_pins_s / 8  # 16 times the rate, less rows and vectors


def test_a_product_is_vector_columns_rows_and_results():
    # 128 banks, 16 matrix rows each of 1024 x 2 bytes: 64 columns a row, one DRAM row each
    expected = 2048 / 32e9 + 16 * 64 * 1e-9 + 16 * 20e-9 + 2048 * 2 / 256e9
    assert BANKS.product_s(2048, 1024) == pytest.approx(expected)
    assert BANKS.product_s(2049, 1024) > BANKS.product_s(2048, 1024) + 60e-9


def test_energy_counts_rows_columns_and_pins():
    held = 128 * 1024 * 2.0
    pins = (8 * 2048 + 256) * 1e-11
    expected = held * 1e-11 + 128 * 1e-9 + 128 * 1024 * 2e-12 + pins
    assert BANKS.product_j(128, 1024) == pytest.approx(expected, rel=1e-6)


def test_what_cannot_be_is_refused():
    with pytest.raises(OutOfRange, match="no shorter than a column"):
        BankedMemory(
            num_channels=1,
            num_banks=1,
            column_bytes=32.0,
            column_s=1e-9,
            row_bytes=16.0,
            open_s=0.0,
            close_s=0.0,
            channel_bytes_per_s=1.0,
        )
    with pytest.raises(OutOfRange, match="above 0"):
        Roofs(flops_per_s=0.0, bytes_per_s=1.0)

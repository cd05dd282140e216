"""Compressed weights that stream past multipliers: what binds, and what skipping, narrowing and keeping save."""

from dataclasses import replace

import pytest

from orrery.base.errors import OutOfRange
from orrery.kernels.lowbit.streamed import Compressed, StreamEngine, token_s

ENGINE = StreamEngine(memory_bytes_per_s=100e9, reached_frac=0.5, crossing_frac=0.25, flops_per_s=2e12)
DENSE = Compressed(num_entries=1e9)


def test_bytes_bind_one_token_and_multipliers_bind_many():
    assert token_s(ENGINE, (DENSE,)) == pytest.approx(1e9 / 50e9)
    assert token_s(ENGINE, (DENSE,), tokens=40) == pytest.approx(0.04)


def test_fewer_and_narrower_entries_are_fewer_bytes():
    half = Compressed(num_entries=1e9, kept_frac=0.5, weight_bits=3.0, place_bits=1.0)
    assert half.moved_bytes == pytest.approx(0.25e9)
    assert token_s(ENGINE, (half, half)) == pytest.approx(0.5e9 / 50e9)


def test_multipliers_that_do_not_skip_do_all():
    thin = (Compressed(num_entries=1e9, kept_frac=0.25),)
    assert token_s(ENGINE, thin, tokens=100) == pytest.approx(0.025)
    assert token_s(replace(ENGINE, skips_zeros=False), thin, tokens=100) == pytest.approx(0.1)


def test_activations_off_chip_cross_channels():
    off = replace(ENGINE, keeps_activations=False)
    assert token_s(ENGINE, (DENSE,), activation_bytes=1e8) == pytest.approx(0.02)
    assert token_s(off, (DENSE,), activation_bytes=1e8) == pytest.approx(0.02 + 1e8 / 25e9)
    assert token_s(ENGINE, (DENSE,), cache_bytes=1e8) == pytest.approx(0.024)


def test_shares_above_one_are_refused():
    with pytest.raises(OutOfRange, match="up to 1"):
        StreamEngine(memory_bytes_per_s=1.0, reached_frac=1.1, crossing_frac=0.1, flops_per_s=1.0)

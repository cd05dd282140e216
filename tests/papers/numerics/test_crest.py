"""Integers against floats by crest factor, by block size, before and after a rotation."""

import numpy as np
import pytest

from orrery.numerics.crest import blocks_of_crest
from orrery_papers.int_vs_fp.crest import clipping_bias, crossover, sqnr_by_block
from orrery_papers.shared.tails import crest_factor

ROTATED = 256
"""Neighbours that a rotation mixes."""


def by_block(formats: tuple[str, str], block: int, law: str, rotated: int = 0) -> tuple[float, float]:
    first, second = sqnr_by_block(formats, (block,), law, rotated_elements=rotated)
    return first.sqnr_db, second.sqnr_db


@pytest.mark.parametrize(("crest", "size"), [(1.0, 16), (1.3, 16), (2.5, 32), (5.6, 32), (3.0, 256)])
def test_blocks_have_exactly_the_crest_factor_asked_for(crest: float, size: int):
    blocks = blocks_of_crest(crest, size, 50, 0)
    assert blocks.shape == (50, size)
    assert np.allclose(crest_factor(blocks), crest, rtol=1e-3)


def test_mxint8_is_ahead_of_mxfp8_at_any_crest_factor_that_a_block_of_32_can_have():
    assert crossover("mxint8", "mxfp8", 32) == float("inf")
    assert crossover("mxint8", "mxfp8", 256) < 16.0


def test_fewer_bits_cross_over_earlier():
    eight = crossover("int8sym/32:ue8m0:ceil", "e4m3fn/32:ue8m0:ceil", 256)
    four = crossover("int4sym/32:ue8m0:ceil", "e2m1/32:ue8m0:ceil", 32)
    assert 1.5 < four < 3.0 < 6.0 < eight < 10.0


@pytest.mark.parametrize("law", ["normal", "student_t", "laplace", "outliers"])
def test_mxint8_is_ahead_of_mxfp8_in_blocks_of_32(law: str):
    integer, float_ = by_block(("mxint8", "mxfp8"), 32, law)
    assert integer > float_


def test_floats_are_ahead_at_coarse_granularity_where_there_are_outliers():
    for block in (256, 1024):
        integer, float_ = by_block(("mxint8", "mxfp8"), block, "outliers")
        assert float_ > integer


@pytest.mark.parametrize("law", ["normal", "student_t", "laplace"])
def test_floats_are_ahead_at_four_bits_in_blocks_of_32(law: str):
    integer, float_ = by_block(("mxint4", "mxfp4"), 32, law)
    assert float_ > integer


@pytest.mark.parametrize("law", ["student_t", "laplace", "outliers"])
def test_nvint4_passes_nvfp4_after_a_hadamard_rotation(law: str):
    before, after = by_block(("nvint4", "nvfp4"), 16, law), by_block(("nvint4", "nvfp4"), 16, law, ROTATED)
    assert before[1] > before[0]
    assert after[0] > after[1]


def test_finer_blocks_have_lower_crest_factors_and_less_integer_noise():
    rows = sqnr_by_block(("int4sym/32",), (16, 64, 256), "student_t")
    assert rows[0].crest_factor < rows[1].crest_factor < rows[2].crest_factor
    assert rows[0].sqnr_db > rows[1].sqnr_db > rows[2].sqnr_db


def test_twos_complement_drifts_in_short_arithmetic_and_symmetric_clipping_stops_it():
    drifting = clipping_bias(8, is_symmetric=False)
    assert drifting.mean_steps < -1e-3
    assert drifting.lowest_code_frac > 1e-3
    assert clipping_bias(8, is_symmetric=True).mean_steps == 0.0
    assert clipping_bias(8, is_symmetric=False, arithmetic="fp32").mean_steps == 0.0

"""Where integers beat floats is computed: by crest factor, by block size, before and after a rotation."""

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.numerics.crest import at_block, blocks_of_crest, sqnr_by_crest


@pytest.mark.parametrize(("crest", "size"), [(0.9, 16), (4.1, 16), (6.0, 32)])
def test_crest_factors_that_no_block_can_have_are_refused(crest: float, size: int):
    with pytest.raises(OutOfRange, match="crest factor of 1 to"):
        blocks_of_crest(crest, size, 4, 0)


def test_integers_lose_what_the_theory_of_even_steps_says():
    # Noise of a step D is D^2 / 12 with D = crest / 127 in units of the RMS.
    for row in sqnr_by_crest(("int8sym/32",), (2.5, 3.0, 4.0), 32):
        assert row.sqnr_db == pytest.approx(20 * np.log10(np.sqrt(12) * 127 / row.crest_factor), abs=0.4)


def test_floats_hardly_care_about_the_crest_factor():
    low, high = sqnr_by_crest(("mxfp8",), (2.0, 5.0), 32)
    assert abs(low.sqnr_db - high.sqnr_db) < 2.0
    even_low, even_high = sqnr_by_crest(("mxint8",), (2.0, 5.0), 32)
    assert even_low.sqnr_db - even_high.sqnr_db > 7.0


def test_granularity_changes_the_innermost_scale_only():
    known = at_block("nvfp4", 64)
    assert known.block_elements == 64
    assert len(known.scaling.levels) == 2
    assert at_block("bf16", 64).scaling.levels == ()


def test_the_same_seed_gives_the_same_rows():
    assert sqnr_by_crest(("mxfp4",), (2.0,), 32, 3) == sqnr_by_crest(("mxfp4",), (2.0,), 32, 3)
    assert sqnr_by_crest(("mxfp4",), (2.0,), 32, 3) != sqnr_by_crest(("mxfp4",), (2.0,), 32, 4)

"""All 2^32 FP32 numbers through every 8-, 6- and 4-bit element format: minutes, outside the default run."""

import numpy as np
import pytest
from definition import FLOATS, LISTED, expected, sides

from orrery.numerics.codec.rounding import round_to

CHUNK = 1 << 25


@pytest.mark.slow
@pytest.mark.parametrize("saturates", [True, False])
@pytest.mark.parametrize("name", FLOATS)
def test_every_fp32_number_rounds_as_the_specification_says(name, saturates):
    definition = FLOATS[name]
    segments = definition.segments(saturates)
    starts = [s for s, _ in segments] + [0x7F800001]
    values = [v for _, v in segments]
    for start in range(0, 1 << 31, CHUNK):
        bits = np.arange(start, start + CHUNK, dtype=np.uint32)
        got = round_to(bits.view(np.float32), name, saturates=saturates)
        mirrored = round_to((bits | np.uint32(1 << 31)).view(np.float32), name, saturates=saturates)
        if start <= 0x7F800000 < start + CHUNK:
            nan = bits.view(np.float32) != bits.view(np.float32)
            assert np.all(np.isnan(got[nan]) if definition.specials != "finite" else got[nan] == 0)
        for first, last, value in zip(starts, starts[1:], values, strict=False):
            part = slice(max(first, start) - start, min(last, start + CHUNK) - start)
            if part.start < part.stop:
                assert np.array_equal(got[part], np.full(got[part].size, value, np.float32), equal_nan=True)
                below = -value if definition.is_signed else 0.0
                assert np.array_equal(mirrored[part], np.full(got[part].size, below, np.float32), equal_nan=True)
        if definition.specials != "fnuz" and definition.is_signed:
            assert np.signbit(mirrored[: CHUNK // 2][~np.isnan(mirrored[: CHUNK // 2])]).all() or start > 0x7F000000
    assert expected(np.array([0], np.uint32), segments)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTED)
def test_every_fp32_number_finds_its_listed_value(name):
    for sign, segments in sides(name).items():
        for start in range(0, 0x7F800001, CHUNK):
            bits = np.arange(max(start, 1), min(start + CHUNK, 0x7F800001), dtype=np.uint32)
            got = round_to(bits.view(np.float32) * np.float32(sign), name)
            if name == "ue8m0" and sign < 0:
                assert np.isnan(got).all()
                continue
            borders = [*(s for s, _ in segments), 0x7F800001]
            for first, last, (_, value) in zip(borders, borders[1:], segments, strict=False):
                low, high = max(first - int(bits[0]), 0), last - int(bits[0])
                assert high <= 0 or np.all(got[low:high] == value)

"""The same numbers as torch, gfloat and pychop, where these define a format, and only what is installed."""

import numpy as np
import pytest

from orrery.numerics.codec.rounding import decode, encode, round_to
from orrery.numerics.names import get_element
from orrery.numerics.quantise import round_trip
from orrery.numerics.rounding import Rounding

pytestmark = pytest.mark.slow

TORCH = {
    "e4m3fn": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
    "bf16": "bfloat16",
    "fp16": "float16",
}


def numbers(count: int = 2_000_000) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)


@pytest.mark.parametrize("name", TORCH)
def test_codes_are_those_of_torch(name):
    torch = pytest.importorskip("torch")
    x = numbers()
    x = x[~np.isnan(x)]
    dtype = getattr(torch, TORCH[name])
    theirs = torch.from_numpy(x).to(dtype)
    saturates = bool(torch.tensor(np.finfo(np.float32).max).to(dtype).float().isfinite())  # e4m3fn: newer versions do
    wide = 2 if name in ("bf16", "fp16") else 1
    codes = theirs.view(torch.int16 if wide == 2 else torch.uint8).numpy().view(f"u{wide}")
    assert np.array_equal(encode(x, name, saturates=saturates), codes)
    assert np.array_equal(decode(codes, name), theirs.float().numpy(), equal_nan=True)


GFLOAT = {
    "e4m3fn": "format_info_ocp_e4m3",
    "e5m2": "format_info_ocp_e5m2",
    "e2m3": "format_info_ocp_e2m3",
    "e3m2": "format_info_ocp_e3m2",
    "e2m1": "format_info_ocp_e2m1",
    "ue8m0": "format_info_ocp_e8m0",
}
GFLOAT_MODES = {
    Rounding.NEAREST_EVEN: "TiesToEven",
    Rounding.NEAREST_AWAY: "TiesToAway",
    Rounding.TOWARD_ZERO: "TowardZero",
    Rounding.UP: "TowardPositive",
    Rounding.DOWN: "TowardNegative",
}


@pytest.mark.parametrize("name", GFLOAT)
def test_values_and_all_modes_are_those_of_gfloat(name):
    gfloat = pytest.importorskip("gfloat")
    formats = pytest.importorskip("gfloat.formats")
    known = getattr(formats, GFLOAT[name])
    values = get_element(name).values()
    theirs = [gfloat.decode_float(known, code).fval for code in range(values.size)]
    assert np.array_equal(values, theirs, equal_nan=True)
    if name == "ue8m0":
        return
    rng = np.random.default_rng(1)
    top = 2.5 * get_element(name).highest
    x = np.concatenate([rng.uniform(-top, top, 20_000), rng.standard_normal(20_000)])
    for ours, other in GFLOAT_MODES.items():
        want = gfloat.round_ndarray(known, x, gfloat.RoundMode[other], sat=True)
        assert np.array_equal(round_to(x, name, rounding=ours), want), ours


PYCHOP_MODES = {
    Rounding.NEAREST_EVEN: 1,
    Rounding.UP: 2,
    Rounding.DOWN: 3,
    Rounding.TOWARD_ZERO: 4,
    Rounding.NEAREST_ZERO: 7,
    Rounding.NEAREST_AWAY: 8,
    Rounding.ODD: 9,
}


def test_rounding_is_that_of_pychop():
    pychop = pytest.importorskip("pychop")
    pychop.backend("numpy")
    x = np.random.default_rng(2).standard_normal(20_000)
    for ours, theirs in PYCHOP_MODES.items():
        chop = pychop.Chop(exp_bits=5, sig_bits=2, rmode=theirs)
        assert np.array_equal(round_to(x, "e5m2", rounding=ours), chop(x)), ours


def test_blocks_are_those_of_gfloat():
    gfloat = pytest.importorskip("gfloat")
    formats = pytest.importorskip("gfloat.formats")
    x = np.random.default_rng(3).standard_normal((200, 32))
    for name, block in (("mxfp4", "format_info_mxfp4_e2m1"), ("mxfp8", "format_info_mxfp8_e4m3")):
        if not hasattr(formats, block):
            pytest.skip(f"this gfloat has no {block}")
        ours = round_trip(x, name)
        for row, got in zip(x.astype(np.float32), ours, strict=True):
            scale = gfloat.compute_scale_amax(getattr(formats, block).etype.emax, row)
            assert scale == 2.0 ** (np.floor(np.log2(np.abs(row).max())) - getattr(formats, block).etype.emax)
            want = gfloat.round_ndarray(getattr(formats, block).etype, row / scale, sat=True) * scale
            assert np.array_equal(got, want.astype(np.float32))

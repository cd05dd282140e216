"""Speed of codecs on one core, beside other libraries in the same run: ``make bench`` (those that are installed)."""

import time
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from orrery.numerics.codec.rounding import decode, encode, round_to
from orrery.numerics.draws import draw
from orrery.numerics.quantise import quantise, round_trip

pytestmark = pytest.mark.bench

SHAPE = (4096, 4096)


def rate(run: Callable[[], object], elements: int, repeats: int = 7) -> float:
    """Million elements a second, the best of some runs."""
    run()
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return elements / best / 1e6


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return draw("normal", SHAPE, 0)


ML_DTYPES = {
    "e4m3fn": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e4m3": "float8_e4m3",
    "e3m4": "float8_e3m4",
    "e4m3b11fnuz": "float8_e4m3b11fnuz",
    "e2m3": "float6_e2m3fn",
    "e3m2": "float6_e3m2fn",
    "e2m1": "float4_e2m1fn",
    "ue8m0": "float8_e8m0fnu",
    "bf16": "bfloat16",
    "int4": "int4",
    "int2": "int2",
}


@pytest.mark.parametrize("name", ML_DTYPES)
def test_no_format_is_slower_than_in_ml_dtypes(x, name):
    other = getattr(ml_dtypes, ML_DTYPES[name])
    values, codes, out = np.abs(x) + 0.5, encode(x, name), np.empty_like(x)
    if name.startswith("int"):
        values = np.clip(values, -2, 1)
    stored = values.astype(other)
    ours = rate(lambda: round_to(values, name, out=out), x.size)
    theirs = rate(lambda: values.astype(other).astype(np.float32), x.size, 2)
    pairs = {
        "round trip": (ours, theirs),
        "encode": (rate(lambda: encode(values, name), x.size), rate(lambda: values.astype(other), x.size, 2)),
        "decode": (rate(lambda: decode(codes, name), x.size), rate(lambda: stored.astype(np.float32), x.size, 2)),
    }
    line = "   ".join(f"{what} {a:6,.0f} : {b:6,.0f} ({a / b:.1f}x)" for what, (a, b) in pairs.items())
    print(f"\n{name:12} million/s, ours : ml_dtypes   {line}")
    assert ours > theirs


def test_e4m3_and_e2m1_pass_500_million_a_second(x):
    out = np.empty_like(x)
    found = {name: rate(lambda: round_to(x, name, out=out), x.size) for name in ("e4m3fn", "e2m1")}  # noqa: B023
    print("\nround trips, million/s:", {k: round(v) for k, v in found.items()})
    assert min(found.values()) > 500


def test_blocks_pass_200_million_a_second(x):
    out = np.empty_like(x)
    names = ("mxfp4", "nvfp4", "mxfp8", "mxint8", "int4/128:fp16", "fp8_block", "int8", "nf4")
    found = {name: rate(lambda: round_trip(x, name, out=out), x.size) for name in names}  # noqa: B023
    coded = {name: rate(lambda: quantise(x, name), x.size, 2) for name in names}  # noqa: B023
    print("\nblock round trips, million/s:", {k: round(v) for k, v in found.items()})
    print("codes and scales, million/s:", {k: round(v) for k, v in coded.items()})
    assert min(found["mxfp4"], found["nvfp4"]) > 200


def test_torch_casts_in_the_same_run(x):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    tensor = torch.from_numpy(x)
    for name, other in (("e4m3fn", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2), ("bf16", torch.bfloat16)):
        out = np.empty_like(x)
        ours = rate(lambda: round_to(x, name, out=out), x.size)  # noqa: B023
        theirs = rate(lambda: tensor.to(other).to(torch.float32), x.size)  # noqa: B023
        print(f"\n{name}: ours {ours:,.0f}, torch {theirs:,.0f} million/s ({ours / theirs:.1f}x)")
        assert ours > 0


def test_gfloat_and_pychop_in_the_same_run(x):
    gfloat, formats = pytest.importorskip("gfloat"), pytest.importorskip("gfloat.formats")
    pychop = pytest.importorskip("pychop")
    part = x[:256].astype(np.float64)
    out = np.empty_like(part)
    ours = rate(lambda: round_to(part, "e4m3fn", out=out), part.size)
    theirs = rate(lambda: gfloat.round_ndarray(formats.format_info_ocp_e4m3, part, sat=True), part.size, 2)
    chop = pychop.Chop(exp_bits=4, sig_bits=3, rmode=1)
    chopped = rate(lambda: chop(part), part.size, 2)
    print(f"\ne4m3fn of FP64: ours {ours:,.0f}, gfloat {theirs:,.1f}, pychop {chopped:,.1f} million/s")
    small = x[:8]
    blocks = rate(lambda: round_trip(x, "mxfp4"), x.size)
    slow = rate(lambda: pychop.mx_quantize(small, format="mxfp4_e2m1"), small.size, 1)
    print(f"MXFP4 blocks: ours {blocks:,.0f}, pychop {slow:,.2f} million/s ({blocks / slow:,.0f}x)")
    assert blocks > 50 * slow
    assert ours > max(theirs, chopped)

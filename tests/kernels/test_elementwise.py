"""Element-wise work: bytes, launches, and kinds that were never measured."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import UnknownName
from orrery.catalog.devices import device_names, get_device
from orrery.kernels.elementwise import integer_only, predict
from orrery.kernels.elementwise.rule import KINDS, calibration
from orrery.kernels.elementwise.softmax_passes import Processor, counts, fits, run
from orrery.kernels.ops import Elementwise


def test_a_gelu_of_codes_is_its_instructions_alone():
    """It stands behind a product whose results are in registers: nothing moves, nothing is launched."""
    device = get_device("h100-sxm")
    found = integer_only.predict("gelu", 10, 20, device)
    done = 200 * integer_only.instructions("gelu") * 2
    assert (float(found.time_s), float(found.compute_s)) == (done / device.vector_flops_per_s,) * 2
    assert (float(found.memory_s), float(found.overhead_s), float(found.bytes)) == (0.0, 0.0, 0.0)
    assert float(found.flops) == done


@settings(deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    tokens=st.integers(1, 100_000),
    width=st.integers(1, 60_000),
    device=st.sampled_from(["a100-sxm-80gb", "h100-sxm", "b200", "mi300x"]),
)
def test_the_kernel_says_what_the_formula_says(kind: str, tokens: int, width: int, device: str):
    found = get_device(device)
    c = calibration(kind, found).constants
    per_element = {
        "norm": 4,
        "rope": 4,
        "gated_activation": 6,
        "add": 6,
        "embedding": 4,
        "softmax": 4,
        "quantise": 4,
        "sample": 14,
        "mhc_pre": 2,
        "mhc_post": 2,
    }[kind]
    moved = tokens * width * per_element
    stream = moved / (c["bandwidth_frac"] * found.memory_bandwidth_bytes_per_s)
    stream *= 1 - c["cache_gain_frac"] * min(1, max(0, 2 - 2 * moved / found.last_level_cache_bytes))
    p = c["overlap_power"]
    timing = predict(Elementwise(kind=kind, tokens=tokens, width=width), found)
    assert timing.time_s == pytest.approx((stream**p + c["overhead_s"] ** p) ** (1 / p), rel=1e-9)
    assert timing.time_s - timing.overhead_s == pytest.approx(stream, rel=1e-6, abs=1e-15)
    assert timing.bytes == moved


def test_quantising_writes_the_format():
    device = get_device("b200")
    moved = [
        float(predict(Elementwise(kind="quantise", tokens=8, width=1024, format=f), device).bytes)
        for f in ("fp8", "nvfp4")
    ]
    assert moved == [8 * 1024 * 3, 8 * 1024 * (2 + 0.5625)]


def test_arrays_and_single_numbers_agree():
    device = get_device("h100-sxm")
    tokens, width = np.array([1, 30, 4000]), np.array([[4096], [8192]])
    many = predict(Elementwise(kind="norm", tokens=tokens, width=width), device).time_s
    single = [
        [float(predict(Elementwise(kind="norm", tokens=int(t), width=int(w)), device).time_s) for t in tokens]
        for w in width[:, 0]
    ]
    assert many.tolist() == single


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_more_elements_take_longer_and_none_take_nothing(kind: str):
    device = get_device("h100-sxm")
    time = predict(Elementwise(kind=kind, tokens=np.arange(0, 200_000, 50), width=4096), device).time_s
    assert time[0] == 0.0
    assert (np.diff(time) > 0).all()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_never_faster_than_memory_allows_beyond_the_cache(kind: str):
    for name in device_names():
        device = get_device(name)
        timing = predict(Elementwise(kind=kind, tokens=np.array([1, 10**6]), width=8192), device)
        assert timing.time_s[1] >= timing.memory_s[1]
        assert np.isfinite(timing.time_s).all()


def test_a_slower_clock_slows_everything_alike():
    device = get_device("h100-sxm")
    slow = replace(
        device,
        memory_bandwidth_bytes_per_s=device.memory_bandwidth_bytes_per_s / 4,
        vector_flops_per_s=device.vector_flops_per_s / 4,
        calibrations={
            key: replace(c, constants={n: v * (4 if n.endswith("_s") else 1) for n, v in c.constants.items()})
            for key, c in device.calibrations.items()
        },
    )
    op = Elementwise(kind="norm", tokens=np.array([1, 100, 10_000]), width=4096)
    assert (4 * predict(op, device).time_s == predict(op, slow).time_s).all()


def test_what_was_never_measured_says_whose_constants_it_borrows():
    device = get_device("h100-sxm")
    measured, borrowed = calibration("add", device).spread, calibration("quantise", device).spread
    assert "never measured" in borrowed.because
    assert borrowed.high_95_ratio > measured.high_95_ratio


def test_an_unknown_kind_answers_with_the_nearest():
    with pytest.raises(UnknownName, match="norm"):
        predict(Elementwise(kind="norms", tokens=1, width=8), get_device("h100-sxm"))


@pytest.mark.parametrize(
    ("kind", "flops"),
    [
        ("norm", 5),
        ("rope", 4),
        ("gated_activation", 6),
        ("add", 1),
        ("embedding", 0),
        ("softmax", 8),
        ("quantise", 3),
        ("mhc_pre", 4),
        ("mhc_post", 4),
        ("sample", 12),
    ],
)
def test_operations_of_each_kind(kind: str, flops: int):
    """A norm squares, adds, scales twice and rounds; a rotation multiplies twice and adds for either half."""
    device = get_device("h100-sxm")
    timing = predict(Elementwise(kind=kind, tokens=10, width=100), device)
    assert timing.flops == 1000 * flops
    assert timing.compute_s == pytest.approx(1000 * flops / device.vector_flops_per_s)
    assert timing.memory_s == pytest.approx(timing.bytes / device.memory_bandwidth_bytes_per_s)


def test_a_softmax_moves_what_its_passes_move():
    """Inside the cache 2 words an element, outside what the algorithm reads and writes; an instruction is two FLOPs."""
    processor = Processor(vector_flops_per_s=1e3, bytes_per_s=1e2, cache_bytes=80.0)
    assert fits(10, processor, 4.0)
    assert not fits(11, processor, 4.0)
    each = counts("recompute")
    for columns, words in ((10, 2.0), (11, each.num_memory_operations)):
        found = run("recompute", 3, columns, processor)
        assert found.memory_bytes == pytest.approx(words * 3 * columns * 4)
        assert found.num_instructions == pytest.approx(each.num_instructions * 3 * columns)
        assert found.memory_s == pytest.approx(found.memory_bytes / 1e2)
        assert found.instructions_s == pytest.approx(found.num_instructions * 2 / 1e3)
        assert found.time_s == found.memory_s + found.instructions_s
    assert [round(counts(name).num_memory_operations) for name in ("reload", "recompute", "two-pass")] == [5, 4, 3]

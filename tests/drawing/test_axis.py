"""Scales keep the order of values, ticks are round, told apart and inside the axis."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orrery.drawing import Axis
from orrery.drawing.axis import scale

FINITE = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(min_value=1e-140, max_value=1e140)


def texts(axis, values, room=80.0):
    return [text for _, text in scale(axis, values, 0.0, 600.0).ticks(room)]


@pytest.mark.parametrize(
    ("axis", "values", "expected"),
    [
        (Axis("", "tokens/s"), [0, 1800], ["0", "0.5 k", "1.0 k", "1.5 k"]),
        (Axis("", "s"), [0.001, 0.0049], ["0", "1 ms", "2 ms", "3 ms", "4 ms", "5 ms"]),
        (Axis("", "bytes"), [1e10, 7.1e10], ["0", "20 GB", "40 GB", "60 GB", "80 GB"]),
        (Axis("", "frac"), [0, 1], ["0", "20 %", "40 %", "60 %", "80 %", "100 %"]),
        (Axis("", "B/s"), [0, 4e10], ["0", "10 G", "20 G", "30 G", "40 G"]),
        (Axis("", "s", is_log=True), [1e-9, 1e-3], ["1 ns", "10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms"]),
        (Axis("", "B", is_log=True), [1, 1e9], ["1 B", "100 B", "10 kB", "1 MB", "100 MB"]),
        (Axis("", is_log=True), [0.9, 11], ["1", "2", "5", "10"]),
        (Axis("", low=-1, high=1), [5], ["-1.0", "-0.5", "0", "0.5", "1.0"]),
    ],
)
def test_ticks_are_round_and_carry_prefixes(axis, values, expected):
    assert texts(axis, values) == expected


def test_the_unit_stands_at_the_ticks_or_at_the_name():
    assert Axis("Time", "s").name() == "Time"
    assert Axis("Rate", "tokens_per_s").name() == "Rate (tokens/s)"
    assert Axis("", "B/s").name() == "B/s"


def test_an_axis_far_from_zero_shows_what_differs():
    assert texts(Axis("", "s"), [1000.0, 1000.004])[:3] == ["1,000.000 s", "1,000.001 s", "1,000.002 s"]


def test_very_small_and_very_large_powers_are_written_with_exponents():
    assert texts(Axis("", "B", is_log=True), [1e-9, 1e-3])[0] == "10⁻⁹ B"
    assert texts(Axis("", is_log=True), [1e21, 1e27])[-1] == "10²⁷"


@given(st.lists(FINITE, min_size=1, max_size=8))
@example([5e-324])
@example([1e308, -1e308])
@example([1.0, 1.0 + 2**-52])
@example([-3.0, -3.0])
def test_a_linear_scale_holds_its_values_in_order(values):
    s = scale(Axis("", "s"), values, 0.0, 600.0)
    inside = sorted(v for v in values if s.axis.takes(v))
    places = [s.at(v) for v in inside]
    assert places == sorted(places)
    assert all(-0.01 <= at <= 600.01 for at in places)
    assert s.low < s.high


@given(st.lists(POSITIVE, min_size=1, max_size=8), st.floats(1.5, 100))
def test_equal_ratios_are_equal_distances_on_a_scale_of_powers(values, ratio):
    s = scale(Axis("", is_log=True), values, 0.0, 600.0)
    assert all(-0.01 <= s.at(v) <= 600.01 for v in values)
    first = s.at(values[0] * ratio) - s.at(values[0])
    assert s.at(values[-1] * ratio) - s.at(values[-1]) == pytest.approx(first, rel=1e-6)
    assert first > 0


@given(
    st.one_of(st.lists(FINITE, min_size=1, max_size=4)), st.booleans(), st.sampled_from(["s", "", "tokens/s", "frac"])
)
def test_ticks_rise_lie_inside_and_differ(values, is_log, unit):
    s = scale(Axis("", unit, is_log=is_log), values, 0.0, 600.0)
    ticks = s.ticks(60.0)
    caption = [text for _, text in ticks]
    assert [v for v, _ in ticks] == sorted({v for v, _ in ticks})
    assert all(-1 <= s.at(v) <= 601 for v, _ in ticks)
    assert len(ticks) <= 11
    if s.high - s.low > 1e-6 * max(abs(s.low), abs(s.high)):
        assert len(set(caption)) == len(caption)


def test_stated_ends_are_kept_unless_they_have_no_place():
    retained = scale(Axis("", low=0.0, high=80.0), [5.0], 0.0, 1.0)
    assert (retained.low, retained.high) == (0.0, 80.0)
    broken = scale(Axis("", is_log=True, low=0.0, high=math.nan), [5.0], 0.0, 1.0)
    assert 0 < broken.low < 5 < broken.high
    crossed = scale(Axis("", low=9.0, high=3.0), [5.0], 0.0, 1.0)
    assert crossed.low < crossed.high


def test_what_has_no_place():
    assert not any(Axis("").takes(v) for v in (math.nan, math.inf, -math.inf, 1e200))
    assert not any(Axis("", is_log=True).takes(v) for v in (0.0, -1.0, math.nan))
    assert Axis("").takes(-1.0)

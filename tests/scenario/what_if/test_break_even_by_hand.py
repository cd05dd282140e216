"""Where a technique turns from a gain into none, on laws that are known, and differences of figures."""

from math import log
from types import SimpleNamespace

import pytest

from orrery.base.cost import Interval
from orrery.scenario.fields import BY_NAME
from orrery.scenario.what_if import compare, difference, what_if
from orrery.scenario.what_if.break_even import BreakEven, break_even, grid
from orrery.scenario.what_if.side import side_of


def test_values_that_are_tried():
    """A sixteenth to sixteen times, within bounds; counts are whole, shares go by twentieths."""
    assert grid(BY_NAME["rate"], 4.0) == tuple(4.0 * 2.0**k for k in range(-4, 5))
    assert grid(BY_NAME["concurrency"], 3) == (1, 2, 3, 6, 12, 24, 48)
    assert grid(BY_NAME["concurrency"], 1)[0] == 1
    assert grid(BY_NAME["tp"], 4096)[-1] == 4096
    shares = grid(BY_NAME["kv_kept_bytes"], 0.33)
    assert len(shares) == 21
    assert (shares[0], shares[-1]) == (0.05, 1.0)
    assert 0.33 in shares


@pytest.mark.parametrize(
    ("edge", "below", "value"),
    [(10.0, True, 10.0), (10.0, False, 10.0), (0.9, True, 0.9), (60.0, False, 60.0)],
)
def test_the_edge_of_a_gain_is_found(edge, below, value):
    """The end of the part in which it helps, to one percent."""
    found = break_even("rate", 4.0, lambda x: (x < edge) == below)
    assert found.helps == ("below" if below else "above")
    assert found.value == pytest.approx(value, rel=0.011)
    assert (found.value < edge) == below
    assert (found.low, found.high, found.at, found.turns) == (0.25, 64.0, 4.0, 1)


@pytest.mark.parametrize(("edge", "below", "value"), [(20, True, 19), (20, False, 20), (5, True, 4)])
def test_whole_numbers_turn_between_two_of_them(edge, below, value):
    found = break_even("concurrency", 8, lambda x: (x < edge) == below)
    assert found.value == value


def test_of_several_turns_the_nearest_counts():
    """It helps from 0.4 to 12 and again from 50: seen from 8 the turn at 12 is nearest."""
    found = break_even("rate", 8.0, lambda x: 0.7 < x < 12 or x > 50)
    assert (found.turns, found.helps) == (3, "below")
    assert found.value == pytest.approx(12, rel=0.011)
    assert "it turns 3 times, this is the nearest" in str(found)
    early = break_even("rate", 1.0, lambda x: 0.7 < x < 12)
    assert (early.helps, early.value) == ("above", pytest.approx(0.7, rel=0.011))


def test_a_gain_without_an_edge():
    assert break_even("rate", 4.0, lambda x: True).helps == "everywhere"
    assert break_even("rate", 4.0, lambda x: False).helps == "nowhere"
    assert break_even("rate", 4.0, lambda x: None) is None
    assert break_even("rate", 4.0, lambda x: True if x == 4.0 else None) is None
    part = break_even("rate", 4.0, lambda x: x < 3 if 1 <= x <= 8 else None)
    assert (part.low, part.high) == (1.0, 8.0)


def test_a_middle_that_cannot_be_tried_ends_the_search():
    """Between 8 and 16 nothing can be tried: the last known value in which it helps."""
    tried = []

    def helps(x):
        tried.append(x)
        return None if 8 < x < 16 else x <= 8

    assert break_even("rate", 4.0, helps).value == 8.0
    assert 8 < tried[-1] < 16


def test_an_edge_in_words():
    one = BreakEven(input="input_tokens", at=4.0, low=1.0, high=9.0, value=3.0, helps="below", turns=1)
    assert str(one) == "input tokens: it helps below 3 (here 4; tried 1 to 9)"
    none = BreakEven(input="rate", at=4.0, low=1.0, high=9.0, helps="nowhere")
    assert str(none) == "rate: it helps nowhere from 1 to 9"


# --- differences


def side(intervals=None, **figures):
    return SimpleNamespace(figures=figures, intervals=intervals or {})


def test_a_figure_over_the_other_less_one(monkeypatch):
    monkeypatch.setattr(difference, "shared_frac", lambda without, having: 0.5)
    names = [m.name for m in difference.METRICS]
    time, other = names[0], names[1]
    found = difference.differences(side(**{time: 4.0, other: 0.0}), side(**{time: 5.0, other: 3.0}))
    assert list(found) == [time]  # nothing is compared with 0
    assert (found[time].frac, found[time].low_80) == (0.25, None)
    still = difference.differences(side(**{time: 4.0}), side(**{time: 4.0 * (1 + 1e-10)}))[time]
    assert (still.frac, still.low_80, still.high_80) == (0.0, 0.0, 0.0)
    around = Interval(low_80=3.0, high_80=5.0, low_95=2.0, high_95=6.0)
    asked = []

    def apart(a, around_a, b, around_b, shared_frac):
        asked.append((a, b, shared_frac))
        return Interval(low_80=1.1, high_80=1.5, low_95=1.0, high_95=1.6)

    monkeypatch.setattr(difference, "difference_interval", apart)
    unsure = difference.differences(side({time: around}, **{time: 4.0}), side({time: around}, **{time: 5.0}))[time]
    assert asked == [(4.0, 5.0, 0.5)]
    assert (unsure.low_80, unsure.high_80) == (pytest.approx(0.1), pytest.approx(0.5))
    assert unsure.is_sure


@pytest.mark.parametrize(
    ("low", "high", "sure"),
    [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.1, False), (0.0, 0.1, False), (None, 0.1, False)],
)
def test_a_difference_is_sure_where_none_is_left_out(low, high, sure):
    assert difference.Difference(frac=0.1, low_80=low, high_80=high).is_sure is sure


def test_gains_are_logarithms_above_0_where_a_figure_is_better():
    time, rate = SimpleNamespace(name="x", is_rate=False), SimpleNamespace(name="x", is_rate=True)
    assert difference.gain(time, {"x": 4.0}, {"x": 2.0}) == pytest.approx(log(2))
    assert difference.gain(rate, {"x": 4.0}, {"x": 2.0}) == pytest.approx(-log(2))
    for without, having in (({}, {"x": 1.0}), ({"x": 1.0}, {}), ({"x": 0.0}, {"x": 1.0}), ({"x": 1.0}, {"x": 0.0})):
        assert difference.gain(rate, without, having) is None


def test_sides_are_the_same_where_no_figure_moves():
    name = difference.METRICS[0].name
    assert difference.is_same(side(**{name: 1.0, "other": 1.0}), side(**{name: 1.0, "other": 2.0}))
    assert not difference.is_same(side(**{name: 1.0}), side(**{name: 1.001}))
    assert not difference.is_same(side(**{name: 1.0}), side())
    assert not difference.is_same(side(), side())


def test_techniques_are_compared_with_the_same_sides_which_are_computed_once(monkeypatch):
    """Two formats over the same inputs: each scenario without them is asked once, and turns are those of each alone."""
    asked = []

    def counted(question, scenario):
        asked.append(scenario.written())
        return side_of(question, scenario)

    monkeypatch.setattr(compare, "side_of", counted)
    given = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 64, "concurrency": 16}
    both = what_if(["fp8-weights", "fp8-kv-cache"], break_even=["concurrency"], **given)
    plain = [str(one) for one in asked if not {"weights", "kv"} & one.keys()]
    assert len(plain) == len(set(plain)) > 5
    for found in both.results:
        (alone,) = what_if(found.technique, break_even=["concurrency"], **given).results
        assert found.to_json() == alone.to_json()

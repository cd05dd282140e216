"""Predictions beside measurements and claims, each worked out by hand: intervals, what moved, how it is said."""

import math
from dataclasses import replace

import numpy as np
import pytest

from orrery.base.cost import Interval, Spread
from orrery.evidence.amounts import amount, input_name, input_text, metric_name
from orrery.evidence.answers import Answers
from orrery.evidence.checked import Checked
from orrery.evidence.judge import claim_result
from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.judge.curve import Curve
from orrery.evidence.judge.scorecard import Drawn, Scorecard, Scored, _is_near, _toml, has_moved, moved
from orrery.evidence.paper_file import get_paper
from orrery.evidence.prediction import Prediction
from orrery.evidence.tables import Table
from orrery.evidence.verdict import accepted, is_met, is_reversed, neutral, ratio, verdict

NAN = math.nan
SPREAD = Spread(low_80_ratio=0.5, high_80_ratio=2.0, low_95_ratio=0.25, high_95_ratio=4.0, because="")

# -- rows -------------------------------------------------------------------------------------------------------------


def answers():
    """Rows 0 and 2 take 10 and 20 s, by a rule whose interval is half to twice that; row 1 takes 5 s, 4 to 6."""
    found = Answers(4)
    found.predict("time_s", np.array([0, 2]), np.array([10.0, 20.0]), SPREAD)
    found.predict_one("time_s", 1, 5.0, Interval(low_80=4.0, high_80=6.0, low_95=3.0, high_95=7.0, because=""))
    return found


def test_an_interval_is_the_prediction_times_its_spread():
    found = answers()
    np.testing.assert_array_equal(found.predicted["time_s"], [10.0, 5.0, 20.0, NAN])
    bounds = found.intervals["time_s"]
    np.testing.assert_array_equal(bounds["low_80"], [5.0, 4.0, 10.0, NAN])
    np.testing.assert_array_equal(bounds["high_80"], [20.0, 6.0, 40.0, NAN])
    np.testing.assert_array_equal(bounds["low_95"], [2.5, 3.0, 5.0, NAN])
    np.testing.assert_array_equal(bounds["high_95"], [40.0, 7.0, 80.0, NAN])


@pytest.mark.parametrize(
    ("measured", "in_80", "in_95"),
    [
        ([5.0, 4.0, 40.0, 1.0], [1, 1, 1, NAN], [1, 1, 1, NAN]),  # both ends belong to it
        ([4.9, 6.1, 41.0, 1.0], [0, 0, 0, NAN], [1, 1, 1, NAN]),
        ([2.4, 7.1, 80.1, 1.0], [0, 0, 0, NAN], [0, 0, 0, NAN]),
    ],
)
def test_measurements_inside_their_intervals(measured, in_80, in_95):
    found = answers()
    np.testing.assert_array_equal(found.inside("time_s", np.array(measured), 80), in_80)
    np.testing.assert_array_equal(found.inside("time_s", np.array(measured), 95), in_95)


def test_a_prediction_without_an_interval_is_in_none_and_a_row_is_declined_once():
    found = Answers(2)
    found.predict("power_w", np.array([1]), np.array([7.0]))
    assert np.isnan(found.inside("power_w", np.array([7.0, 7.0]), 80)).all()
    found.decline([0], "no device")
    found.decline([0, 1], "no model")
    assert found.declined == {0: "no device", 1: "no model"}
    assert np.isnan(found.bound_s).tolist() == [True, True]


def test_rows_that_are_scored_state_a_value_and_are_given_one():
    """Row 0 is 25 % too large; row 1 measures nothing; row 2 was declined; row 3 was given nothing."""
    found = answers()
    found.decline([2], "too large")
    found.predict("fits", np.array([0, 1, 2, 3]), np.array([1.0, 0.0, 1.0, 0.0]))
    measured = {"time_s": np.array([8.0, NAN, 20.0, 3.0]), "fits": np.array([1.0, 1.0, 1.0, 0.0])}
    every = np.ones(4, dtype=np.bool_)
    checked = Checked(table=Table("t", {"kind": ["kernel"] * 4}), measured=measured, answers=found, counted=every)
    assert checked.scored("time_s").tolist() == [True, False, False, False]
    assert checked.error("time_s", np.array([0])).tolist() == [0.25]
    assert checked.error("fits", every).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert not checked.scored("power_w").any()


# -- claims -----------------------------------------------------------------------------------------------------------


def claim_of(**changed):
    usual = {"reading": "value", "tolerance_frac": 0.2, "judged": None, "assumed": (), "because": "", "missing": ""}
    return replace(get_paper("holmes").claims[0], **(usual | changed))


@pytest.mark.parametrize(
    ("claim", "low", "high"),
    [
        ({"low": 3.0, "high": 3.0, "unit": "ratio", "baseline": "b"}, 2.6, 3.4),
        ({"low": 0.5, "high": 2.0, "unit": "ratio", "baseline": "b"}, 0.4, 2.2),
        ({"low": 1.0, "high": 1.0, "unit": "ratio", "baseline": "b"}, 0.95, 1.05),  # no gain: five points
        ({"low": 3.0, "high": 3.0, "unit": "ratio", "baseline": ""}, 2.4, 3.6),
        ({"low": 10.0, "high": 20.0, "unit": "s", "baseline": "b"}, 8.0, 24.0),
        ({"low": 0.0, "high": 0.0, "unit": "s", "baseline": ""}, -0.05, 0.05),
        ({"low": 0.25, "high": 0.5, "unit": "frac", "baseline": ""}, 0.2, 0.6),
        ({"low": 0.75, "high": 0.75, "unit": "frac", "baseline": ""}, 0.7, 0.8),  # a fifth of what remains
        ({"low": 0.75, "high": 1.0, "unit": "frac", "baseline": ""}, 0.7, 1.05),
        ({"low": 0.75, "high": 1.5, "unit": "frac", "baseline": ""}, 0.6, 1.8),
        ({"low": 0.75, "high": 0.75, "unit": "frac", "baseline": "", "is_increase": True}, 0.6, 0.9),
        ({"low": 2.0, "high": 2.0, "unit": "ratio", "baseline": "b", "reading": "at least"}, 2.0, 2.0),
        ({"low": 2.0, "high": 2.5, "unit": "s", "baseline": "", "reading": "less than"}, 2.0, 2.5),
        ({"low": 4.0, "high": 4.0, "unit": "s", "baseline": "", "tolerance_frac": 0.5}, 2.0, 6.0),
    ],
)
def test_numbers_that_count_as_what_is_reported(claim, low, high):
    found = claim_of(**claim)
    assert accepted(found) == pytest.approx((low, high))
    if found.reading == "value":
        assert [is_met(found, x) for x in (low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6)] == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("unit", "baseline", "nothing"),
    [("ratio", "b", 1.0), ("frac", "b", 0.0), ("points", "b", 0.0), ("s", "b", None), ("ratio", "", None)],
)
def test_the_number_of_no_effect(unit, baseline, nothing):
    assert neutral(claim_of(unit=unit, baseline=baseline)) == nothing


@pytest.mark.parametrize(
    ("changed", "predicted", "word"),
    [
        ({}, None, "not modeled"),
        ({"judged": "not counted"}, 2.0, "not counted"),
        ({"judged": "anchored"}, 9.0, "anchored"),
        ({"judged": "no evidence"}, 2.0, "no evidence"),
        ({"judged": "no evidence"}, 9.0, "not reproduced"),
        ({"judged": "sign only"}, 2.0, "sign only"),
        ({"assumed": (1.9, 2.1)}, 2.0, "reproduced"),
        ({"assumed": (1.9, 3.0)}, 2.0, "not reproduced"),  # at one end of the assumption it is missed
        ({"assumed": (1.9, 2.1)}, 3.0, "not reproduced"),
    ],
)
def test_what_a_file_says_of_its_verdict(changed, predicted, word):
    assert verdict(claim_of(low=2.0, high=2.0, unit="ratio", baseline="b", **changed), predicted) == word


@pytest.mark.parametrize(
    ("claim", "predicted", "turned"),
    [
        ({"low": 2.0, "high": 3.0, "unit": "ratio", "baseline": "b"}, 0.99, True),
        ({"low": 2.0, "high": 3.0, "unit": "ratio", "baseline": "b"}, 1.0, False),  # no effect is no reversal
        ({"low": 0.5, "high": 0.5, "unit": "ratio", "baseline": "b"}, 1.01, True),
        ({"low": 0.5, "high": 2.0, "unit": "ratio", "baseline": "b"}, 0.9, False),  # the paper reports both
        ({"low": 1.0, "high": 1.0, "unit": "ratio", "baseline": "b"}, 0.9, False),  # and here that nothing changes
        ({"low": 1.0, "high": 1.0, "unit": "ratio", "baseline": "b", "reading": "at least"}, 0.9, True),
        ({"low": 1.0, "high": 1.0, "unit": "ratio", "baseline": "b", "reading": "less than"}, 1.1, True),
        ({"low": 0.2, "high": 0.2, "unit": "frac", "baseline": "b"}, -0.01, True),
        ({"low": -0.2, "high": -0.1, "unit": "frac", "baseline": "b"}, 0.01, True),
        ({"low": 0.2, "high": 0.2, "unit": "frac", "baseline": ""}, -0.01, False),  # nothing is compared
        ({"low": 0.2, "high": 0.2, "unit": "s", "baseline": "b"}, -0.01, False),
    ],
)
def test_comparisons_that_come_out_the_other_way_round(claim, predicted, turned):
    assert is_reversed(claim_of(**claim), predicted) is turned
    assert not (turned and is_met(claim_of(**claim), predicted))


@pytest.mark.parametrize(("predicted", "over"), [(1.0, 0.5), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0), (6.0, 1.5)])
def test_a_ratio_is_over_the_nearer_end_of_a_range(predicted, over):
    assert ratio(claim_of(low=2.0, high=4.0), predicted) == over
    result = ClaimResult(paper="holmes", claim=claim_of(low=2.0, high=4.0), predicted=predicted, because="so")
    assert result.ratio == over
    assert result.to_json()["reported"] == [2.0, 4.0]


def test_nothing_has_a_ratio_to_zero():
    assert math.isnan(ratio(claim_of(low=0.0, high=0.0), 1.0))
    zero = ClaimResult(paper="holmes", claim=claim_of(low=0.0, high=0.0), predicted=1.0, because="so")
    assert (zero.ratio, zero.to_json()["reported"]) == (None, 0.0)
    assert replace(zero, predicted=None).ratio is None


@pytest.mark.parametrize(
    ("predicted", "text"),
    [
        (2.0, "so"),
        (2.19, "so"),
        (2.4, "so. Differs by links"),
        (2.41, "so. Differs by links"),
        (1.5, "so. Differs by links"),
    ],
)
def test_what_differs_is_said_where_a_prediction_is_off(predicted, text):
    """Of a gain of 1 a fifth may be missing: 1.8 to 2.2; further off than a fifth of the number from 2.4."""
    claim = claim_of(low=2.0, high=2.0, unit="ratio", baseline="b")
    found = Prediction(claim=claim.id, predicted=predicted, because="so", differs="links")
    assert claim_result._judged(get_paper("holmes"), claim, found).because == text
    unexplained = replace(found, differs="")
    assert claim_result._judged(get_paper("holmes"), claim, unexplained).because == "so"
    wide = replace(claim, unit="s", tolerance_frac=0.5)
    assert claim_result._judged(get_paper("holmes"), wide, replace(found, predicted=2.3)).because == "so"
    assert claim_result._judged(get_paper("holmes"), wide, replace(found, predicted=2.5)).because.endswith("links")


def test_reasons_for_a_verdict_come_first():
    result = ClaimResult(paper="holmes", claim=claim_of(because="an echo"), predicted=1.0, because="so")
    assert result.why == "An echo. so"
    assert replace(result, claim=claim_of()).why == "so"


# -- what moved -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("was", "now", "is_near"),
    [
        (1000.0, 1000.9, True),
        (1000.0, 1001.1, False),
        (-1000.0, -1000.9, True),
        (0.0, 5e-10, True),
        (0.0, 5e-9, False),
        (None, None, True),
        (None, 0.0, False),
        (0.0, None, False),
    ],
)
def test_a_thousandth_is_no_move(was, now, is_near):
    assert _is_near(was, now, 0.001) is is_near


def test_moves_are_said_and_numbers_kept_to_six_digits():
    claim = get_paper("holmes").claims[0]
    before = Scored(predicted=1234.5678, ratio=1.0, verdict="reproduced", because="so")
    card = Scorecard(papers={"holmes": {claim.id: before}}, curves={})
    now = ClaimResult(paper="holmes", claim=claim, predicted=1235.0, because="so")
    assert moved([now], 0.001, card) == ()
    assert moved([now], 1e-4, card) == (f"holmes/{claim.id}: 1234.57 in the file, 1235 now",)
    assert moved([replace(now, predicted=None)], 0.5, card) == (f"holmes/{claim.id}: 1234.57 in the file, nothing now",)
    assert moved([replace(now, paper="x")], 0.5, card) == (f"x/{claim.id}: nothing in the file, 1235 now",)
    assert [_toml(x) for x in (1234.5678, 2.0, 1e-9)] == ["1234.57", "2.0", "1e-09"]


def test_a_curve_moves_where_one_of_its_values_does_or_another_input_is_swept():
    claim = get_paper("holmes").claims[0]
    curve = Curve(claim=claim, input="num_devices", values=(8.0, 16), predicted=(1.0, 2.0), better="more")
    drawn = Drawn.of(curve)
    assert drawn.sweep == f"{claim.id} across num_devices: 8, 16"
    card = Scorecard(papers={}, curves={"holmes": drawn})
    assert not has_moved("holmes", curve, 0.001, card)
    assert has_moved("holmes", replace(curve, predicted=(1.0, 2.01)), 0.001, card)
    assert not has_moved("holmes", replace(curve, predicted=(1.0, 2.01)), 0.01, card)
    assert has_moved("holmes", replace(curve, input="tokens"), 0.001, card)
    assert has_moved("holmes", None, 0.001, card)
    assert has_moved("other", curve, 0.001, card)
    assert not has_moved("other", None, 0.001, card)


# -- how it is said ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (7190.0, "s", "7,190 s"),
        (7200.0, "s", "2 hours"),
        (172_799.0, "s", "48 hours"),
        (172_800.0, "s", "2 days"),
        (-7200.0, "s", "-2 hours"),
        (2e9, "bytes_per_s", "2 GB/s"),
        (0.125, "points", "12.5 points"),
        (999.0, "score", "999"),
        (1000.0, "tokens", "1,000 tokens"),
        (999_999.0, "tokens", "999,999 tokens"),
        (1e6, "parameters", "1 million parameters"),
        (2.5e9, "parameters", "2.5 billion parameters"),
        (9e14, "tokens", "900 trillion tokens"),
        (1e15, "tokens", "1e+15 tokens"),
    ],
)
def test_numbers_as_people_write_them(value, unit, text):
    assert amount(value, unit) == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("is_on", True, "yes"),
        ("is_on", False, "no"),
        ("model", "opt-13b", "opt-13b"),
        ("power_w", 700.0, "700 W"),
        ("num_tokens", 2048.0, "2,048"),
        ("max_batch_tokens", 2048.0, "2,048"),
        ("energy_j_per_s", 5.0, "5 J/s"),
        ("requests_per_s", 5.0, "5"),
        ("share_frac", 0.5, "50 %"),
    ],
)
def test_values_of_inputs(name, value, text):
    assert input_text(name, value) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("memory_bandwidth_bytes_per_s", "memory bandwidth"),
        ("max_num_seqs", "most seqs"),
        ("batch_s", "batch"),
        ("s", "s"),
        ("layers_swept", "layers"),
        ("arrivals_per_s", "arrivals a second"),
        ("gpu_frac", "GPU share"),
    ],
)
def test_names_of_inputs(name, text):
    assert input_name(name) == text
    assert metric_name("e2e_latency") == "E2E latency"

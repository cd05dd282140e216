"""Curves in words: where a technique helps, where it hurts, and where the one becomes the other."""

import math

import pytest

from orrery.base.sources import Source
from orrery.evidence.find.crossing import reading
from orrery.evidence.judge.curve import Curve
from orrery.evidence.paper_file import Claim, Setup


def read(values, predicted, *, unit="ratio", baseline="vllm", input="input_mean_tokens", better="more"):
    claim = Claim(
        id="c",
        metric="throughput_ratio",
        low=2.0,
        high=2.0,
        unit=unit,
        baseline=baseline,
        setup=Setup(name="s", inputs={}),
        origin="abstract",
        source=Source(title="t"),
        at="abstract",
    )
    return reading(Curve(claim=claim, input=input, values=tuple(values), predicted=tuple(predicted), better=better))


def test_a_crossing_is_interpolated():
    found = read([100.0, 200.0, 300.0], [0.5, 1.5, 2.0])
    assert found.crossings == (pytest.approx(150.0),)
    assert found.shape == "rises"
    assert [point.is_better for point in found.points] == [False, True, True]
    assert found.sentence == (
        "Helps for input mean tokens above about 150 tokens, hurts below 150 tokens. "
        "The throughput ratio rises with growing input mean tokens; best 2 at 300 tokens."
    )


def test_wide_ranges_are_interpolated_on_a_logarithmic_scale():
    assert read([10.0, 1000.0], [0.5, 1.5]).crossings == (pytest.approx(100.0),)
    assert read([0.0, 1000.0], [0.5, 1.5]).crossings == (pytest.approx(500.0),)


def test_a_fall_helps_below():
    found = read([1.0, 2.0, 3.0], [0.4, 0.2, -0.2], unit="frac", input="num_batch")
    assert found.sentence.startswith("Helps for batch below about 2.5, hurts above 2.5.")
    assert found.shape == "falls"


def test_less_of_a_cost_is_better():
    found = read([1.0, 2.0, 3.0], [0.8, 0.9, 1.2], better="less", input="num_batch")
    assert found.sentence.startswith("Helps for batch below about 2.33, hurts above 2.33.")
    assert "best 0.8 at 1" in found.sentence


def test_two_crossings_are_a_stretch():
    found = read([1.0, 2.0, 3.0, 4.0], [0.5, 1.5, 1.5, 0.5], input="num_batch")
    assert len(found.crossings) == 2
    assert found.sentence.startswith("Helps for batch from 1.5 to 3.5, hurts elsewhere.")
    assert found.shape == "rises and falls"
    other = read([1.0, 2.0, 3.0, 4.0], [1.5, 0.5, 0.5, 1.5], input="num_batch")
    assert other.sentence.startswith("Helps for batch below about 1.5 and above about 3.5, hurts elsewhere.")


@pytest.mark.parametrize(
    ("predicted", "begins", "shape"),
    [
        ([1.2, 1.3, 1.4], "Always helps in this range.", "rises"),
        ([1.0, 1.3, 1.4], "Helps in this range; nothing is gained at 1.", "rises"),
        ([0.9, 0.8, 0.7], "Hurts in all of this range.", "falls"),
        ([1.0, 0.8, 0.7], "Never helps in this range; nothing is lost at 1.", "falls"),
        ([1.001, 1.0, 0.999], "Makes no difference in this range.", "stays"),
    ],
)
def test_one_side_only(predicted, begins, shape):
    found = read([1.0, 2.0, 3.0], predicted, input="num_batch")
    assert found.sentence.startswith(begins)
    assert found.shape == shape
    assert found.crossings == ()


def test_a_point_at_neutral_between_both_sides_is_the_crossing():
    assert read([1.0, 2.0, 3.0], [0.5, 1.0, 1.5], input="num_batch").crossings == (pytest.approx(2.0),)


def test_words_have_no_crossing():
    found = read(["none", "full"], [0.5, 1.5], input="recompute")
    assert found.sentence.startswith("Helps at full; hurts at none.")
    assert "over recompute" in found.sentence


def test_lists_are_told_apart_from_their_commas():
    found = read(["1, 1", "1, 2", "1, 4"], [1.5, 1.2, 0.5], input="client_speeds_swept")
    assert found.sentence.startswith("Helps at 1, 1; 1, 2; hurts at 1, 4.")


def test_what_hardly_changes_has_no_best():
    found = read([1.0, 2.0, 3.0], [1.2, 1.2, 1.2], input="slo_ttft_s")
    assert found.sentence == "Always helps in this range. The throughput ratio hardly changes over SLO TTFT: about 1.2."


def test_what_compares_nothing_says_from_where_to_where():
    found = read([1e9, 2e9], [100.0, 250.0], unit="tokens_per_s", baseline="", input="link_bytes_per_s")
    assert found.neutral is None
    assert found.sentence == (
        "The throughput ratio rises with growing link bandwidth, from 100 tokens/s at 1 GB/s to 250 tokens/s at 2 GB/s."
    )


def test_what_is_not_finite_is_neither_better_nor_worse():
    found = read([1.0, 2.0, 3.0], [0.5, math.inf, 1.5], input="num_batch")
    assert [point.is_better for point in found.points] == [False, None, True]

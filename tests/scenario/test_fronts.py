"""Pareto fronts of one accelerator: each point is the estimate of its settings, and none beats another."""

import math
from itertools import pairwise

import pytest

import orrery
from orrery.scenario.ask import Answer
from orrery.scenario.fronts import fronts_of
from orrery.scenario.schema import read_scenario

ASKED = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 100,
    "max_devices": 2,
    "weights": "bf16",
    "kv": "bf16",
}


def points_of(**more):
    """Points by number of devices."""
    found = fronts_of(read_scenario(ASKED | more))
    sizes = [point.answer.estimate.num_devices for point in found]
    assert sizes == sorted(sizes)
    return {size: [p for p, n in zip(found, sizes, strict=True) if n == size] for size in set(sizes)}


@pytest.fixture(scope="module")
def points():
    return points_of()


def speed(point):
    return 1.0 / point.answer.estimate.tpot_s


def test_a_point_is_what_estimate_says_to_its_settings(points):
    for size, group in points.items():
        point = group[-1]
        assert point.settings["tp"] == size
        assert "max_devices" not in point.settings
        found = orrery.estimate(**point.settings)
        assert found.estimate.output_tokens_per_s == point.answer.estimate.output_tokens_per_s


def test_none_beats_another_of_its_size(points):
    """The fastest for one user first; whoever is slower makes more."""
    for group in points.values():
        speeds = [speed(point) for point in group]
        rates = [point.answer.estimate.output_tokens_per_s for point in group]
        assert speeds == sorted(speeds, reverse=True)
        assert rates == sorted(rates)
        assert len({*speeds}) == len({*rates}) == len(group)


def test_few_points_evenly_spread_from_one_user_to_the_slowest_that_people_read(points):
    """At most five, the first with one request at a time; on a scale of ratios their distances differ by half."""
    for group in points.values():
        assert 3 <= len(group) <= 5
        assert group[0].settings["concurrency"] == 1
        assert 8.0 * 0.9 <= speed(group[-1]) < 8.0 * 1.4  # an even loop beside the closed form that chose them
        distances = [math.log(speed(a) / speed(b)) for a, b in pairwise(group)]
        assert max(distances) < 2.0 * min(distances)


def test_the_most_within_the_objectives_is_a_point_too(points):
    """25 ms for each token after the first; a fifth more load would break them."""
    within = points_of(slo=["ttft:1000 tpot:25"])
    for size, group in within.items():
        (new,) = [p for p in group if p.settings not in [q.settings for q in points[size]]]
        assert new.answer.estimate.ttft_s <= 1.0
        assert new.answer.estimate.tpot_s <= 0.025
        more = orrery.estimate(**new.settings | {"concurrency": math.ceil(1.2 * new.settings["concurrency"])})
        assert isinstance(more, Answer)
        assert more.estimate.tpot_s > 0.025


def test_objectives_that_nothing_holds_add_no_point(points):
    found = points_of(slo=["ttft:0.001"])
    assert {size: len(group) for size, group in found.items()} == {size: len(group) for size, group in points.items()}


def test_stated_settings_are_those_of_every_point():
    found = points_of(weights="fp8", kv="fp8", engine="sglang", max_devices=1)
    for point in found[1]:
        assert {name: point.settings[name] for name in ("weights", "kv", "engine")} == {
            "weights": "fp8",
            "kv": "fp8",
            "engine": "sglang",
        }


def test_no_pipelines_where_others_fit():
    """141 GB in 16 bits do not fit two cards of 48 GB; they fit four without a pipeline, so none is tried."""
    big = {"model": "llama-3.1-70b", "device": "l40s"}
    assert points_of(**big, max_devices=2) == {}
    assert {p.settings.get("pp", 1) for p in points_of(**big, max_devices=4)[4]} == {1}

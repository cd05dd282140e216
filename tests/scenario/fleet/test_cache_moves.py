"""`cache_moves` of a fleet: what moving the caches of conversations between regions changes, and where it pays."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.transfer import kv_bytes
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.fleet.cache_moves import cache_moves_of, move_sentences, shortest_moved
from orrery.scenario.fleet.served import ttft_alone_s
from orrery.web.command_pages.fleet_regions import region_sections

CALL = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 4000,
    "output_tokens": 50,
    "rate": 4,
    "days": 0.001,
    "turns": 4,
    "replicas": 2,
    "prefix_caching": True,
    "regions": "westeurope,eastus",
    "origins": "uksouth=0.6,eastus=0.4",
    "region_router": "least-loaded",
}
LINK = 1.25e9


@pytest.fixture(scope="module")
def fleet():
    return simulate_fleet(**CALL, cache_moves="sooner", region_link_bytes_per_s=LINK, egress_usd_per_gb=0.02)


def at(fleet, **changes):
    """The same run with another link."""
    regions = fleet.run.setup.regions
    setup = replace(fleet.run.setup, regions=replace(regions, wide_area=replace(regions.wide_area, **changes)))
    return cache_moves_of(replace(fleet.run, setup=setup))


def test_the_run_is_that_without_moves(fleet):
    plain = simulate_fleet(**CALL)
    assert plain.by_region.cache_moves is None
    assert np.array_equal(plain.run.ttft_s, fleet.run.ttft_s, equal_nan=True)


def test_requests_that_changed_their_region_are_asked(fleet):
    run, found = fleet.run, fleet.by_region.cache_moves
    after, region = run.requests.after, run.outcome.region
    changed = [i for i, j in enumerate(after) if j >= 0 and region[i] != region[j]]
    assert 0 < found.num_elsewhere <= len(changed)
    assert sum(row.num_requests for row in found.break_even) == found.num_elsewhere
    assert found.egress_usd == pytest.approx(0.02 * found.moved_bytes / 1e9)


def test_an_endless_link_without_distance_saves_all_computing_and_a_dead_one_nothing(fleet):
    free = at(fleet, bytes_per_s=1e30, round_trip_s=np.zeros((2, 2)))
    assert free.num_moved == free.num_elsewhere
    assert free.mean_saved_s == pytest.approx(free.mean_again_s)
    assert free.p99_ttft_moved_s <= free.p99_ttft_s
    dead = at(fleet, bytes_per_s=1.0)
    assert (dead.num_moved, dead.mean_saved_s, dead.moved_bytes) == (0, 0.0, 0.0)
    assert dead.p99_ttft_moved_s == dead.p99_ttft_s
    off = at(fleet, way="off")
    assert (off.num_moved, off.p99_ttft_moved_s) == (0, off.p99_ttft_s)


def test_more_bandwidth_saves_more_and_always_may_lose(fleet):
    saved = [at(fleet, bytes_per_s=rate).mean_saved_s for rate in (1e9, 1e10, 1e11)]
    assert saved == sorted(saved)
    assert at(fleet, way="always", bytes_per_s=1e8).mean_saved_s < 0.0


def test_the_break_even_rate_is_bytes_over_what_is_left_of_the_computing(fleet):
    """Over all requests, the rate times the time that the round trip leaves is every byte that lay elsewhere."""
    trip_s = fleet.run.setup.regions.wide_area.round_trip_s.max()
    rows = fleet.by_region.cache_moves.break_even
    assert all(row.above_bytes_per_s is not None for row in rows)
    whole = sum(row.num_requests * row.above_bytes_per_s * (row.again_s - trip_s) for row in rows)
    assert whole == pytest.approx(at(fleet, way="always").moved_bytes)


def test_the_break_even_length_is_where_both_ways_take_as_long(fleet):
    deployment = fleet.run.setup.service.own_pools[0].deployment
    tokens = shortest_moved(deployment, 0.08, 1e11, 32_000.0)
    again_s = ttft_alone_s(deployment, tokens) - ttft_alone_s(deployment, 16.0)
    assert again_s == pytest.approx(0.08 + kv_bytes(deployment, tokens) / 1e11, rel=0.02)
    assert shortest_moved(deployment, 60.0, 1e11, 32_000.0) is None


def test_sentences_say_both_ways(fleet):
    words = " ".join(move_sentences(fleet.by_region.cache_moves))
    assert "had their history in another region" in words
    assert "over this link from" in words
    titles = [section.title for section in region_sections(fleet.to_json())]
    assert titles[-2:] == ["Caches between regions", "Where moving is sooner"]
    assert fleet.to_json()["cache_moves"]["num_elsewhere"] == fleet.by_region.cache_moves.num_elsewhere


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cache_moves": "nosuch"}, "cache_moves: got 'nosuch'; write off, always, sooner."),
        ({"cache_moves": "sooner"}, "over which link"),
        ({"cache_moves": "sooner", "region_link_bytes_per_s": 1e9, "region_rtt_ms": 1}, "faster than light"),
        ({"cache_moves": "always", "region_link_bytes_per_s": 1e9, "regions": "eastus"}, "two"),
    ],
)
def test_what_cannot_move_is_refused_in_words(change, words):
    with pytest.raises(ScenarioError, match=words.replace("(", r"\(")):
        simulate_fleet(**{**CALL, **change})


def test_what_has_no_effect_says_so():
    alone = {k: v for k, v in CALL.items() if k != "turns"} | {"days": 0.0005}
    notes = simulate_fleet(**alone, cache_moves="sooner", region_link_bytes_per_s=LINK).notes
    assert any("no request follows another one" in note for note in notes)
    steady = simulate_fleet(**CALL, steady=True, cache_moves="sooner", region_link_bytes_per_s=LINK)
    assert any(note.startswith("cache_moves: no effect with steady") for note in steady.notes)
    notes = simulate_fleet(**alone, region_rtt_ms=100).notes
    assert any(note.startswith("region_rtt_ms: no effect") for note in notes)

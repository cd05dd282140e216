"""What a live run's caches gain and lose, told at each look: put together, the changes are the content."""

import sys
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from playing import live_of, submit
from small_runs import service_of

from orrery.base.errors import ScenarioError
from orrery.serving.live.cache_watch import CacheChange
from orrery.serving.requests import Requests
from orrery.serving.simulation.memory._kernel import ABSENT

UNIT = 8


def prompts(*rows):
    """Requests of as many blocks as are named, one after the other, with an answer of one token."""
    count = np.array([len(row) for row in rows])
    return Requests(
        arrive_s=np.arange(len(rows)) * 100.0,
        input_tokens=count * UNIT,
        output_tokens=np.ones(len(rows), dtype=np.int64),
        client=np.zeros(len(rows), dtype=np.int64),
        priority=np.zeros(len(rows)),
        prefix_start=np.concatenate([[0], np.cumsum(count)]),
        prefix_ids=np.array([b for row in rows for b in row]),
        prefix_block_tokens=UNIT,
    )


def looked(live, requests):
    """The changes after each request."""
    watch = live.watch_cache()
    found = []
    for i in range(requests.count):
        submit(live, requests, i)
        live.advance(inf)
        found.append(watch.changes())
    return watch, found


def change(**told):
    return [CacheChange(**{"cache": 0, "is_host": False, "stored": [], "removed": [], "is_empty": False, **told})]


def test_blocks_come_in_the_order_of_their_prompt_and_each_once():
    requests = prompts([7, 3, 5], [7, 3, 9], [7, 3, 5])
    _, found = looked(live_of(service_of(), requests), requests)
    assert found == [change(stored=[7, 3, 5]), change(stored=[9]), []]


def test_a_lost_replica_holds_nothing():
    requests = prompts([1, 2])
    live = live_of(service_of(), requests)
    watch, _ = looked(live, requests)
    live.kill(0, now_s=1000.0)
    assert watch.changes() == change(removed=[1, 2], is_empty=True)
    assert watch.changes() == []


def test_changes_add_up_to_the_content_of_a_cache_with_too_little_room():
    draws = np.random.default_rng(1)
    rows = [[10 * k, *(10 * k + draws.permutation(9)[:3] + 1)] for k in draws.integers(8, size=60).tolist()]
    requests = prompts(*[[int(b) for b in row] for row in rows])
    live = live_of(service_of(), requests, blocks=14)
    held, num_removed = set(), 0
    _, found = looked(live, requests)
    for step in found:
        for told in step:
            assert set(told.removed) <= held
            held = held - set(told.removed) | set(told.stored)
            num_removed += len(told.removed)
    assert num_removed > 20
    assert held == set(live.watch_cache().content().values())
    assert len(held) == int((live.world.memory.users != ABSENT).sum())


def test_a_service_that_shares_nothing_is_refused():
    requests = prompts([1, 2])
    with pytest.raises(ScenarioError, match="shares no prefixes"):
        live_of(replace(service_of(), prefix_caching=False), requests).watch_cache()


def test_too_much_for_the_journal_is_looked_up_in_the_tables(monkeypatch):
    """Room for three entries: at first ten blocks come, then one of them is another's."""
    monkeypatch.setattr("orrery.serving.live.live.JOURNAL", 3)
    requests = prompts([*range(10)], [*range(9), 77], [0, 1])
    _, found = looked(live_of(service_of(), requests), requests)
    assert found == [change(stored=[*range(10)]), change(stored=[77]), []]

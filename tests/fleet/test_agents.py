"""Caches for agents: stack distances against a cache that is moved block by block, and sizes by hand."""

import os
from pathlib import Path

import numpy as np
import pytest

from orrery import cache_size
from orrery.base.errors import ScenarioError
from orrery.catalog.agent_sessions import read_sessions, session_file
from orrery.fleet.agents.blocks import block_reuse_of
from orrery.fleet.agents.stack import Sums, reuse_of
from orrery.fleet.agents.turns import Turns, shape_of, started

SAMPLE = session_file("example-agents")


def turns(rows):
    """Rows of (chain, prompt, output, shared), one a second."""
    chain, prompt, output, shared = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Turns(
        at_s=np.arange(len(rows), dtype=np.float64),
        session=chain,
        chain=chain,
        input_tokens=prompt,
        output_tokens=output,
        shared_tokens=shared,
        think_s=np.ones(len(rows)),
    )


def test_distances_by_hand():
    # a keeps 12; b keeps 6; a comes back: 6 used since, shares 10; then b: a's 15 and the 2 that a left, 17, used since
    found = reuse_of(turns([(0, 10, 2, 0), (1, 5, 1, 0), (0, 12, 3, 10), (1, 6, 1, 4)]))
    assert found.distance_tokens.tolist() == [6, 15]
    assert found.shared_tokens.tolist() == [10, 4]
    assert found.since_s.tolist() == [2.0, 2.0]
    assert found.hit_tokens(9.0).tolist() == [3.0, 0.0]
    assert found.hit_tokens(16.0).tolist() == [10.0, 1.0]
    assert found.size_for(0.5) == 16.0
    assert found.size_for(1.0) == 19.0


def test_nothing_between_two_turns_needs_only_the_beginning():
    found = reuse_of(turns([(0, 10, 2, 0), (0, 12, 3, 10)]))
    assert found.distance_tokens.tolist() == [0]
    assert found.size_for(1.0) == 10.0


def brute_force(drawn, cache):
    """Hits of every turn that shares something, with a cache moved block by block (a block is a token)."""
    stack, held, names, hits = [], {}, 0, []
    rows = zip(
        *(a.tolist() for a in (drawn.chain, drawn.input_tokens, drawn.output_tokens, drawn.shared_tokens)), strict=True
    )
    for chain, prompt, output, shared in rows:
        mine = held.get(chain, [])
        if mine and shared:
            inside = set(stack[:cache])
            run = 0
            while run < shared and mine[run] in inside:
                run += 1
            hits.append(run)
        kept = mine[:shared]
        fresh = list(range(names, names + prompt + output - len(kept)))
        names += len(fresh)
        held[chain] = kept + fresh
        touched = set(held[chain])
        stack = held[chain] + [block for block in stack if block not in touched]
    return hits


@pytest.mark.parametrize("seed", range(6))
def test_as_many_hits_as_a_cache_that_is_moved_block_by_block(seed):
    draw, last, rows = np.random.default_rng(seed), {}, []
    for _ in range(60):
        chain = int(draw.integers(0, 5))
        shared = int(draw.integers(0, last.get(chain, 0) + 1))
        prompt, output = shared + int(draw.integers(1, 12)), int(draw.integers(0, 4))
        rows.append((chain, prompt, output, shared))
        last[chain] = prompt
    drawn = turns(rows)
    found = reuse_of(drawn)
    for cache in (1, 7, 20, 45, 90, 400):
        assert found.hit_tokens(cache).tolist() == brute_force(drawn, cache)


def test_sums_over_the_first_entries():
    sums = Sums(5)
    sums.add(0, 3)
    sums.add(3, 4)
    sums.add(0, -1)
    assert [sums.until(i) for i in range(5)] == [2, 2, 2, 6, 6]


def test_sessions_begin_at_their_rate_and_keep_their_own_clock():
    recorded = read_sessions(SAMPLE, 64)
    moved = started(recorded, 1 / 60, 3)
    assert (np.diff(moved.at_s) >= 0).all()
    first = [float(moved.at_s[moved.session == s][0]) for s in range(40)]
    assert (max(first) - min(first)) / 39 == pytest.approx(60.0, rel=0.4)
    own = recorded.at_s[recorded.session == 0]
    assert np.diff(moved.at_s[moved.session == 0]) == pytest.approx(np.diff(own))
    assert started(recorded, 1 / 60, 3).at_s.tolist() == moved.at_s.tolist()


def test_what_sessions_look_like():
    shape = shape_of(turns([(0, 10, 2, 0), (0, 14, 3, 10), (0, 6, 1, 2)]))
    assert (shape.num_sessions, shape.num_turns, shape.growth_mean_tokens) == (1, 3, 4.0)
    assert shape.compacted_frac == 0.5
    assert shape.shared_frac == pytest.approx(12 / 30)


ONE = {"model": "llama-3.1-8b", "device": "h100-sxm", "sessions": str(SAMPLE), "sessions_per_hour": 100}


def test_tiers_hold_what_their_sum_holds_and_more_cache_computes_less():
    plain = cache_size(**ONE)
    more = cache_size(**ONE, host_cache_bytes=200e9)
    assert [t.name for t in plain.tiers] == ["device"]
    assert [t.name for t in more.tiers] == ["device", "host"]
    assert more.tiers[0].turns_frac == plain.tiers[0].turns_frac
    assert more.tiers[1].turns_frac >= more.tiers[0].turns_frac
    assert more.task.computed_tokens <= plain.task.computed_tokens
    at_goal = [p for p in plain.curve if p[0] >= plain.needed_tokens]
    assert all(p[1] >= plain.cache_hit_frac - 1e-9 for p in at_goal)


def test_a_wider_cache_format_needs_more_bytes_and_the_same_tokens():
    wide, narrow = cache_size(**ONE, kv="bf16"), cache_size(**ONE, kv="fp8")
    assert wide.needed_tokens == narrow.needed_tokens
    assert wide.needed_bytes == 2 * narrow.needed_bytes


def test_files_that_hold_no_sessions_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ScenarioError, match="shared_prefix_tokens"):
        read_sessions(path, 64)
    path.write_text("session,t_s,input_tokens,output_tokens,shared_prefix_tokens\ns,0,ten,1,0\n")
    with pytest.raises(ScenarioError, match="line 2: input_tokens"):
        read_sessions(path, 64)
    with pytest.raises(ScenarioError, match="sessions: is missing"):
        cache_size(model="llama-3.1-8b", device="h100-sxm")


def test_forty_nine_thousand_recorded_requests():
    data = Path(os.environ.get("ORRERY_DATA", "")) / "traces" / "agents" / "requests.csv.gz"
    if not os.environ.get("ORRERY_DATA") or not data.exists():
        pytest.skip("ORRERY_DATA is not set: the recorded sessions are not here")
    recorded = read_sessions(data, 64)
    shape = shape_of(recorded)
    assert (shape.num_sessions, shape.num_turns) == (710, 49_334)
    assert 0.9 < shape.shared_frac < 1.0
    found = cache_size(model="qwen3-32b", device="h100-sxm", tp=4, sessions=str(data), sessions_per_hour=30)
    assert found.tiers[0].turns_frac < 0.5 < found.cache_hit_frac
    assert 0.5e12 < found.needed_bytes < 2e12


def blocks_of(prompts):
    """The reuse of prompts of named blocks of four tokens, one a second."""
    start = np.cumsum([0, *map(len, prompts)])
    ids = np.array([block for prompt in prompts for block in prompt], dtype=np.int64)
    return block_reuse_of(np.arange(len(prompts), dtype=np.float64), start, ids, 4)


def test_named_blocks_by_hand():
    # 0 1 | 0 2 3 | 0 1: first 0 lies under 0, 2, 3 of the second; the third finds 0 on top, and 1 under 0, 2 and 3
    found = blocks_of([[0, 1], [0, 2, 3], [0, 1]])
    assert found.turn.tolist() == [1, 2]
    assert found.shared_tokens.tolist() == [4, 8]
    assert found.needed_tokens.tolist() == [4, 4, 16]
    assert found.since_s.tolist() == [1.0, 2.0]
    assert found.hit_tokens(15.9).tolist() == [4.0, 4.0]
    assert found.hit_tokens(16.0).tolist() == [4.0, 8.0]
    assert (found.size_for(0.5), found.size_for(1.0)) == (4.0, 16.0)
    assert found.only(np.array([False, True])).hit_tokens(4.0).tolist() == [4.0]


@pytest.mark.parametrize("seed", range(4))
def test_named_blocks_hit_as_in_a_cache_that_is_moved(seed):
    draw, prompts = np.random.default_rng(seed), list[list[int]]()
    for k in range(80):
        before = prompts[int(draw.integers(0, k))] if k else []
        prompts.append([*before[: int(draw.integers(0, 6))], *range(1000 * k, 1000 * k + int(draw.integers(0, 4)))])
    found = blocks_of(prompts)
    for cache in (1, 5, 12, 40, 1000):
        stack, hits = list[int](), list[int]()
        seen: set[int] = set()
        for prompt in prompts:
            run = next((k for k, block in enumerate(prompt) if block not in stack), len(prompt))
            if prompt and prompt[0] in seen:
                hits.append(4 * run)
            seen |= set(prompt)
            stack = [*prompt, *(block for block in stack if block not in prompt)][:cache]
        assert found.hit_tokens(4.0 * cache).tolist() == hits


def test_a_trace_that_names_its_blocks(tmp_path):
    path = tmp_path / "t.jsonl"
    line = '{{"timestamp": {}, "input_length": 1100, "output_length": 5, "hash_ids": [{}, {}, 9]}}'
    path.write_text("\n".join(line.format(1000 * k, k % 3, k % 3 + 3) for k in range(9)))
    one = {"model": "llama-3.1-8b", "device": "h100-sxm", "trace": str(path)}
    found = cache_size(**one)
    assert found.needed_tokens == 6 * 512  # three prompts of two whole blocks in turn; the third block is part-filled
    assert found.shape.shared_frac == pytest.approx(6 * 1024 / (9 * 1100))
    assert found.tiers[0].turns_frac == 1.0
    with pytest.raises(ScenarioError, match="sessions_per_hour: is about sessions"):
        cache_size(**one, sessions_per_hour=3)
    with pytest.raises(ScenarioError, match="does not say what its prompts share"):
        cache_size(**{**one, "trace": "chat"})

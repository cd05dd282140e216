"""A graph of calls placed at least cost: by hand on a few numbers, and against every placement there is."""

from itertools import product
from math import inf

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.stages import Stage, Work, cheapest, edges_of
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.fleet.graph_stages import CPU

pytest.importorskip("highspy")

FAST, SLOW = Work(busy_s=1.0, wait_s=1.0), Work(busy_s=2.0, wait_s=4.0)
BOTH = {"dear": FAST, "cheap": SLOW}
RENT = {"dear": 10.0, "cheap": 1.0}
CALL = {"model": "llama-3.1-8b", "input_tokens": 1000, "output_tokens": 100}


def fork():
    """One stage, two beside each other after it, and one after both; 6 bytes leave the first."""
    return [
        Stage(name="a", work=BOTH, passed_bytes=6.0, after=()),
        Stage(name="b", work=BOTH, passed_bytes=0.0, after=(0,)),
        Stage(name="c", work=BOTH, passed_bytes=0.0, after=(0,)),
        Stage(name="d", work=BOTH, passed_bytes=0.0, after=(1, 2)),
    ]


def test_stages_beside_each_other_wait_for_the_slower_one():
    """All cheap: 4 + 4 + 4 s for 8 $. Within 9 s one of the three in a row must be quick: the first or the last, 10 $
    for 2 (8 + 8 = 16 $); the first one's bytes would cross the link (3 s), so it is the last: 4 + 4 + 1 = 9 s."""
    every = cheapest(fork(), RENT, 2.0, inf, ("dear", "cheap"))
    assert (every.usd, every.latency_s) == (8.0, 12.0)
    quick = cheapest(fork(), RENT, 2.0, 9.0, ("dear", "cheap"))
    assert quick.machines == ("cheap", "cheap", "cheap", "dear")
    assert (quick.usd, quick.latency_s) == (16.0, 9.0)
    assert cheapest(fork(), RENT, 2.0, 2.9, ("dear", "cheap")) is None
    assert edges_of(fork()) == [(0, 1), (0, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize("seed", range(6))
def test_nothing_that_could_be_placed_costs_less(seed):
    draw = np.random.default_rng(seed)
    names = ("x", "y", "z")
    stages = [
        Stage(
            name=str(k),
            work={n: Work(busy_s=draw.uniform(1, 9), wait_s=draw.uniform(1, 9)) for n in names[: draw.integers(1, 4)]},
            passed_bytes=draw.uniform(0, 5),
            after=tuple(j for j in range(k) if draw.random() < 0.5),
        )
        for k in range(4)
    ]  # fmt: skip
    rent, limit_s = {n: draw.uniform(1, 5) for n in names}, draw.uniform(8, 25)

    def latency(machines):
        end = [0.0] * 4
        for k, s in enumerate(stages):
            starts = [end[j] + (stages[j].passed_bytes if machines[j] != machines[k] else 0.0) for j in s.after]
            end[k] = max(starts, default=0.0) + s.work[machines[k]].wait_s
        return max(end)

    every = [
        sum(rent[m] * s.work[m].busy_s for s, m in zip(stages, machines, strict=True))
        for machines in product(*[list(s.work) for s in stages])
        if latency(machines) <= limit_s
    ]
    found = cheapest(stages, rent, 1.0, limit_s, names)
    assert (found is None) == (not every)
    if found is not None:
        assert found.usd == pytest.approx(min(every))
        assert found.latency_s == pytest.approx(latency(found.machines))


def graph(*stages, **top):
    return {"stage": list(stages), **top}


def ask(tables, **more):
    return simulate_fleet(graph=tables, **{"device": "l4,h100-sxm", "slo": ["e2el:60000"], **more})


def test_processor_work_costs_its_cores_and_its_time():
    """Three times half a second on four cores at 3.6 $/h: 6 core-seconds, 0.006 $; 1.5 s."""
    tool = {"name": "tool", "cpu_s": 0.5, "cores": 4, "times": 3}
    found = ask(graph(tool, core_usd_per_hour=3.6))
    assert found.placed.usd == pytest.approx(0.006)
    assert found.placed.latency_s == pytest.approx(1.5)
    assert found.placed.machines == (CPU,)
    assert ask(graph(tool, core_usd_per_hour=3.6), rate=2.0).machines == {CPU: 12}
    beside = ask(graph({"name": "call", **CALL}, {**tool, "after": "call"}, core_usd_per_hour=3.6))
    alone = ask(graph({"name": "call", **CALL}))
    assert beside.placed.usd == pytest.approx(alone.placed.usd + 0.006)
    assert beside.placed.latency_s == pytest.approx(alone.placed.latency_s + 1.5)


def test_one_device_saves_nothing_and_a_mix_never_costs_more():
    call = graph({"name": "call", **CALL, "times": 2})
    both = ask(call)
    known = [p.usd for p in both.alone.values() if p is not None]
    assert both.placed.usd <= min(known) * (1 + 1e-9)
    assert ask(call, device="h100-sxm").saving_frac == pytest.approx(0.0)
    assert ask(call, device="h100-sxm").sweep == ()
    assert {p.device for p in both.sweep} == {"l4", "h100-sxm"}
    assert all(p.usd <= p.alone_usd * (1 + 1e-9) for p in both.sweep)
    twice = ask(graph({"name": "call", **CALL, "times": 4}))
    assert twice.placed.usd == pytest.approx(2 * both.placed.usd)


def test_a_task_that_is_too_slow_says_how_long_it_takes():
    found = ask(graph({"name": "call", **CALL}), slo=["e2el:1"])
    assert isinstance(found, InfeasibleAnswer)
    assert found.infeasible.need > found.infeasible.have == pytest.approx(0.001)
    large = ask(graph({"name": "call", **CALL, "model": "llama-3.1-405b"}))
    assert "call: prompt" in large.infeasible.what


@pytest.mark.parametrize(
    ("tables", "more", "message"),
    [
        (graph(), {}, "has no stage"),
        (graph({"name": "a"}), {}, "model is missing"),
        (graph({"name": "a", "cpu_s": 1}), {}, "core_usd_per_hour is missing"),
        (graph({"name": "a", "cpu_s": 1, "model": "llama-3.1-8b"}), {}, "exclude each other"),
        (graph({"name": "a", **CALL}, {"name": "a", **CALL}), {}, "a name of its own"),
        (graph({"name": "a", **CALL, "after": ["b"]}), {}, "'b' is no stage above it"),
        (graph({"name": "a", **CALL, "input_token": 3}), {}, "input_tokens"),
        (graph({"name": "a", **CALL}), {"device": None}, "needs devices"),
        (graph({"name": "a", **CALL}), {"replicas": 3}, "replicas: is not about a graph"),
        (graph({"name": "a", **CALL}, {"name": "b", **CALL, "tp": 2}), {}, "different tp"),
        (graph({"name": "a", **CALL}), {"device": "a30"}, "no price of a30"),
    ],
)
def test_graphs_that_make_no_sense_are_refused(tables, more, message):
    with pytest.raises(ScenarioError, match=message):
        ask(tables, **more)

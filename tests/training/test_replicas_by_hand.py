"""Replicas that meet now and then, of made-up jobs of round times; and what an outage loses."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from round_jobs import Layout, job

from orrery.base.errors import ScenarioError
from orrery.training.local_updates import from_job
from orrery.training.local_updates.techniques import (
    update_co2,
    update_diloco,
    update_gossip,
    update_isolated,
    update_local_sgd,
    update_synchronous,
)
from orrery.training.replica import Replica, scaling_efficiency
from orrery.training.reshape.restart import Outage, recovery

REPLICA = Replica(
    step_s=10.0,
    backward_s=6.0,
    num_parameters=100.0,
    gradient_bytes=2.0,
    weight_bytes=4.0,
    all_reduce_s=lambda sent: sent / 50,
    inside_s=lambda sent: sent / 100,
    neighbour_s=lambda sent: sent / 200,
    contention_ratio=1.25,
    last_frac=0.5,
)


def test_exchanges_beside_work():
    """8 s beside 6 s show 2 s and slow 6 s by a quarter; 4 s slow 4 s; the last bucket shows whatever hides."""
    assert REPLICA.beside_s(8.0, 6.0) == pytest.approx(2.0 + 1.5)
    assert REPLICA.beside_s(4.0, 6.0) == pytest.approx(1.0)
    assert REPLICA.overlapped_s(4.0) == pytest.approx(2.0)
    assert REPLICA.overlapped_s(8.0) == pytest.approx(4.0)
    assert REPLICA.overlapped_s(20.0) == pytest.approx(15.5)
    bare = Replica(
        step_s=1.0, backward_s=1.0, num_parameters=1.0, gradient_bytes=1.0, weight_bytes=1.0,
        all_reduce_s=float, inside_s=float, neighbour_s=float,
    )  # fmt: skip
    assert (bare.contention_ratio, bare.last_frac) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("technique", "knobs", "steps", "exposed_s", "sent", "stale", "extra"),
    [
        (update_synchronous, {}, 1, 2.0, 200.0, 0, 0.0),  # 4 s of gradients: 1 s by contention, half at the end
        (update_isolated, {}, 1, 1.0, 200.0, 0, 0.0),
        (update_local_sgd, {"num_steps": 4}, 4, 8.0, 400.0, 0, 0.0),
        (update_co2, {"num_steps": 4}, 4, 2.0, 400.0, 1, 1200.0),  # 8 s beside 40 s
        (update_gossip, {"num_neighbours": 3, "num_steps": 2}, 2, 1.5, 1200.0, 0, 400.0),  # 6 s beside 20 s
        (update_diloco, {"num_steps": 4}, 4, 4 * 1.0 + 8.0, 4 * 200.0 + 400.0, 0, 800.0),
    ],
)
def test_rounds_of_each_way(technique, knobs, steps, exposed_s, sent, stale, extra):
    found = technique.TECHNIQUE.rule(REPLICA, technique.TECHNIQUE.knobs(**knobs))
    assert (found.num_steps, found.exposed_s, found.sent_bytes) == (steps, pytest.approx(exposed_s), sent)
    assert (found.num_rounds_stale, found.extra_bytes) == (stale, extra)
    assert found.time_s == pytest.approx(10.0 * steps + exposed_s)
    assert scaling_efficiency(REPLICA, found) == pytest.approx(10.0 * steps / found.time_s)


def test_steps_between_meetings_where_nobody_says():
    assert update_local_sgd.LocalStepsKnobs().num_steps == update_co2.Co2Knobs().num_steps == 12
    assert update_diloco.DilocoKnobs().num_steps == 500
    assert (update_gossip.GossipKnobs().num_neighbours, update_gossip.GossipKnobs().num_steps) == (2, 1)
    for knobs, most in (
        (update_local_sgd.LocalStepsKnobs, 100_000),
        (update_co2.Co2Knobs, 100_000),
        (update_gossip.GossipKnobs, 100_000),
        (update_diloco.DilocoKnobs, 1_000_000),
    ):
        assert (knobs(num_steps=1).num_steps, knobs(num_steps=most).num_steps) == (1, most)
        for wrong in (0, most + 1):
            with pytest.raises(ScenarioError, match="num_steps"):
                knobs(num_steps=wrong)


@pytest.fixture
def costed(monkeypatch):
    """Parts of a step, the fullest of two stages' 200 bytes of weights, and every collective that is asked for."""
    told = []
    parts = {"forward": 3.0, "backward": 4.0, "weight gradients": 2.0, "recomputation": 1.0, "update": 5.0}
    parts |= {"gradient reduction": 70.0, "parameter gathering": 80.0}
    made = SimpleNamespace(
        parts={name: np.array([s]) for name, s in parts.items()},
        first=SimpleNamespace(parts={"weights": np.array([200.0])}),
        last=SimpleNamespace(parts={"weights": np.array([120.0])}),
    )

    def collective_s(job, kind, group, apart, sent):
        told.append((kind, int(group[0]), int(apart[0]), float(sent[0])))
        return np.array([2.0])

    monkeypatch.setattr(from_job, "step_of", lambda job, columns: made)
    monkeypatch.setattr(from_job, "columns_of", lambda layouts: None)
    monkeypatch.setattr(from_job, "collective_s", collective_s)
    monkeypatch.setattr(from_job, "gradient_bytes", lambda job: 4.0)
    return told


def test_a_replica_of_a_job(costed):
    """15 s alone; 7 s of backward in five micro-batches; 200 bytes of two are 100 parameters, a bucket of 20 bytes of
    400 is a twentieth. Groups of 8 replicas, 2 apart, cross nodes of four devices."""
    found = from_job.replica_of(job(), Layout())
    assert (found.step_s, found.backward_s, found.num_parameters) == (15.0, pytest.approx(7 / 5), 100.0)
    assert (found.gradient_bytes, found.weight_bytes) == (4.0, 4.0)
    assert (found.contention_ratio, found.last_frac) == (1.1, 0.05)
    assert (found.all_reduce_s(7.0), found.inside_s(7.0), found.neighbour_s(7.0)) == (6.0, 6.0, 6.0)
    assert costed == [("all_reduce", 8, 2, 7.0), ("all_reduce", 8, 2, 7.0), ("send_recv", 2, 4, 7.0)]


def test_islands_and_fewer_participants(costed):
    """Islands of 8 devices hold four replicas of two; a ring leaves one after 8 devices. Two replicas fit a node."""
    here = job(islands=SimpleNamespace(num_devices=8))
    found = from_job.replica_of(here, Layout(), participants=2)
    assert (found.all_reduce_s(7.0), found.inside_s(7.0)) == (3.0, 6.0)
    found.neighbour_s(7.0)
    assert costed == [("all_reduce", 2, 2, 7.0), ("all_reduce", 4, 2, 7.0), ("send_recv", 2, 8, 7.0)]
    small = from_job.replica_of(job(islands=SimpleNamespace(num_devices=1)), Layout(dp=1))
    small.inside_s(7.0)
    small.neighbour_s(7.0)
    assert costed[3:] == [("all_reduce", 1, 2, 7.0), ("send_recv", 1, 1, 7.0)]
    near = from_job.replica_of(job(), Layout(dp=2))
    near.neighbour_s(7.0)
    assert costed[5] == ("send_recv", 2, 2, 7.0)


def test_an_island_holds_whole_replicas(costed):
    """Of islands of 7 devices three replicas of two each, and one device beside them."""
    from_job.replica_of(job(islands=SimpleNamespace(num_devices=7)), Layout()).inside_s(7.0)
    assert costed == [("all_reduce", 3, 2, 7.0)]


def test_weights_as_the_recipe_holds_them_and_gradients_that_wait(costed):
    f = job().framework
    f.overlaps_gradients = False
    found = from_job.replica_of(job(framework=f, recipe=SimpleNamespace(weights_bytes=1.0)), Layout())
    assert (found.num_parameters, found.last_frac) == (200.0, 1.0)
    big = job().framework
    big.bucket_bytes = 1e9
    assert from_job.replica_of(job(framework=big), Layout()).last_frac == 1.0
    for wrong in ({"sharding": "zero1"}, {"cp": 2}, {"ep": 2}):
        with pytest.raises(ScenarioError, match="local updates"):
            from_job.replica_of(job(), Layout(**wrong))


# --- outages


def test_waiting_or_going_on():
    """A repair of 100 s and 10 s to load, or 20 s to reshape, three quarters of the speed for 80 s, and 30 s back."""
    outage = Outage(repair_s=100.0, remaining_frac=0.75, load_s=10.0, reshape_s=20.0, back_s=30.0)
    found = recovery(outage)
    assert (found.waiting_lost_s, found.elastic_lost_s) == (110.0, 20.0 + 20.0 + 30.0)
    assert found.break_even_s == pytest.approx(20 + 20 / 0.75)
    assert found.is_elastic_better
    quick = recovery(replace(outage, repair_s=10.0))
    assert (quick.elastic_lost_s, quick.is_elastic_better) == (50.0, False)
    even = recovery(replace(outage, repair_s=found.break_even_s))
    assert even.waiting_lost_s == pytest.approx(even.elastic_lost_s)
    assert recovery(replace(outage, remaining_frac=0.0)).break_even_s == float("inf")
    for wrong in ({"remaining_frac": 1.1}, {"remaining_frac": -0.1}, {"load_s": -1.0}):
        with pytest.raises(ScenarioError, match="outage"):
            replace(outage, **wrong)

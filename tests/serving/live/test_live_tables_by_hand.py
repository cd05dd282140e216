"""Replicas, snapshots and names of shared blocks of a live run, on tables of a few rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.serving.live import prefixes
from orrery.serving.live.prefixes import Prefixes, widened
from orrery.serving.live.replica_index import ReplicaIndex
from orrery.serving.live.snapshot import adapters_now, snapshot_of
from orrery.serving.simulation.memory._kernel import memory_of
from orrery.serving.simulation.tables import _kernel as k


def lanes_of(*rows):
    """Lanes by (unit, pool, deployment, decoding, prompts, reserved, waiting)."""
    table = np.zeros((len(rows), len(k.LANES)), np.int64)
    columns = [k.UNIT, k.POOL, k.DEPLOYMENT, k.NUM_DECODING, k.NUM_PROMPTS, k.RESERVED, k.NUM_WAITING]
    table[:, columns] = rows
    return table


def test_replicas_of_pools():
    """Three machines, of which two are of the first pool; the first of them has two units."""
    world = SimpleNamespace(
        lanes=lanes_of((0, 0, 0, 1, 2, 3, 4), (1, 0, 0, 10, 0, 0, 1), (2, 1, 0, 0, 0, 0, 0), (3, 2, 1, 5, 0, 0, 6)),
        unit_machine=np.array([0, 0, 1, 2]),
        slowness=np.ones(3),
        tally=np.arange(24).reshape(4, 6),
        memory=SimpleNamespace(
            capacity=np.array([100, 50, 10]), free=np.array([40, 50, 0]), evictable=np.array([10, 0, 5])
        ),
    )
    index = ReplicaIndex(SimpleNamespace(split=None), world)
    assert (index.machine_of_lane.tolist(), index.pool_of.tolist()) == ([0, 0, 1, 2], [0, 0, 1])
    assert ReplicaIndex(SimpleNamespace(split=1), world).pool_of.tolist() == [0, 0, 0]
    found = snapshot_of(world, index)
    assert (found.running.tolist(), found.waiting.tolist()) == ([16, 0, 5], [5, 0, 6])
    assert found.cache_frac.tolist() == [0.5, 0.0, 0.5]
    assert (found.steps.tolist(), found.hit_tokens.tolist()) == ([6, 12, 18], [16, 17, 23])
    assert (found.prompt_tokens.tolist(), found.queried_tokens.tolist()) == ([8, 13, 19], [14, 16, 22])
    assert (found.answer_tokens.tolist(), found.preemptions.tolist()) == ([10, 14, 20], [12, 15, 21])
    for wrong in (-1, 3):
        with pytest.raises(ScenarioError, match="replica"):
            index.check(wrong)
    index.check(2)
    for wrong in (-1, 3):
        with pytest.raises(ScenarioError, match="replicas"):
            index.want(wrong, 0)


def test_lanes_that_take_requests():
    """Of two replicas of a pool the first that is up takes new ones."""

    class World(SimpleNamespace):
        def _replace(self, **given):
            return given

    world = World(
        lanes=lanes_of(*[(i, i, 0, 0, 0, 0, 0) for i in range(3)]), unit_machine=np.arange(3), slowness=np.ones(3)
    )
    index = ReplicaIndex(SimpleNamespace(split=None), world)
    assert index.opened(world)["entry"].tolist() == [0, 1, 2]
    index.want(1, 0)
    assert index.opened(world)["entry"].tolist() == [0]
    index.is_up[0] = False
    assert index.opened(world)["exit"].tolist() == [1]
    index.want(2, 0)
    assert index.opened(world)["entry"].tolist() == [1, 2]
    index.want(0, 0)
    assert index.opened(world)["entry"].size == 0


def test_adapters_of_unfinished_requests():
    req = np.zeros((4, len(k.REQUEST)), np.int64)
    req[:, k.STATUS] = [k.WAITING, k.DECODING, k.DONE, k.TO_COME]
    req[:, k.ADAPTER], req[:, k.LANE] = [5, 6, 7, 8], [1, 0, 0, 0]
    index = SimpleNamespace(machine_of_lane=np.array([3, 4]))
    assert adapters_now(SimpleNamespace(req=req), index).tolist() == [[4, 5, 0], [3, 6, 1]]
    req[1, k.ADAPTER] = -1
    assert adapters_now(SimpleNamespace(req=req), index).tolist() == [[4, 5, 0]]


class Tables(SimpleNamespace):
    def _replace(self, **given):
        return Tables(**(vars(self) | given))


@pytest.fixture
def named(monkeypatch):
    """Four ids at the start, for three requests on one replica."""
    monkeypatch.setattr(prefixes, "FIRST_IDS", 4)
    memory = memory_of(np.array([100]), np.array([0]), 4, 3)
    zeros = np.zeros(3, np.int64)
    return Prefixes(), Tables(
        memory=memory, prefix_ids=np.zeros(4, np.int64), prefix_start=zeros.copy(), prefix_end=zeros.copy()
    )


def ids_of(world, i):
    return world.prefix_ids[world.prefix_start[i] : world.prefix_end[i]].tolist()


def test_names_become_ids(named):
    names, world = named
    world = names.enter(world, 0, "ab")
    world = names.enter(world, 1, "ac")
    first, second = ids_of(world, 0), ids_of(world, 1)
    assert first[0] == second[0]
    assert len({*first, *second}) == names.num_names == 3
    names.leave(world, 0)
    assert ids_of(world, 0) == []


def test_ids_that_nothing_knows_are_taken_back(named):
    """Of four ids two are a request's; three more names need three, and two are left or come back: there are eight."""
    names, world = named
    world = names.enter(world, 0, "abc")
    names.leave(world, 0)
    world = names.enter(world, 1, "ad")
    assert world.memory.num_ids == 4
    world = names.enter(world, 2, "efg")
    assert world.memory.num_ids == 8
    assert len({*ids_of(world, 1), *ids_of(world, 2)}) == 5
    names.leave(world, 2)
    world = names.enter(world, 2, "hijklm")
    assert world.memory.num_ids == 8  # six of eight are free
    assert names.num_names == 8


def test_as_many_ids_as_are_free_need_none_back(named):
    """Three of four ids were a request's that has ended: a fourth name takes the last one, and all are known still."""
    names, world = named
    world = names.enter(world, 0, "abc")
    names.leave(world, 0)
    names.enter(world, 1, "d")
    assert names.num_names == 4


def test_room_for_the_ids_of_requests(named):
    """Of four places three are used; two more do not fit, so all are put together in twice the room that they need."""
    names, world = named
    world = names.enter(world, 0, "abc")
    names.leave(world, 0)
    world = names.enter(world, 1, "ab")
    assert (world.prefix_ids.size, world.prefix_start[1]) == (4, 0)
    world = names.enter(world, 2, "abc")
    assert (world.prefix_ids.size, world.prefix_start[1], world.prefix_start[2]) == (10, 0, 2)
    assert ids_of(world, 2)[:2] == ids_of(world, 1)


def test_more_ids_than_can_be_followed(monkeypatch):
    monkeypatch.setattr(prefixes, "MAX_CACHE_NODES", 16)
    memory = memory_of(np.array([100, 100]), np.array([0, 0]), 4, 3)
    assert widened(memory, 8).num_ids == 8
    with pytest.raises(ScenarioError, match="9 shared blocks on 2 replicas"):
        widened(memory, 9)

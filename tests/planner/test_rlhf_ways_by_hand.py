"""Meshes, turns and ways of RLHF calls, worked out on a few numbers."""

from dataclasses import replace
from types import SimpleNamespace

from orrery.planner.rlhf.mesh import Mesh, mesh_sizes, meshes
from orrery.planner.rlhf.plan import Evaluator, Placed
from orrery.planner.rlhf.ways import CallPlacement, cuts, micro_batches, undominated


def way(tp=1, pp=1, dp=1, time_s=1.0, resident=0.0, weights=0.0, work=0.0, sharding="none", batch=1):
    return CallPlacement(
        tp=tp,
        pp=pp,
        dp=dp,
        micro_batch=batch,
        time_s=time_s,
        resident_bytes=resident,
        weights_bytes=weights,
        work_bytes=work,
        sharding=sharding,
    )


def test_ways_and_meshes():
    here = way(2, 3, 4, resident=1.0, weights=2.0, work=4.0)
    assert (here.num_devices, here.peak_bytes, here.cut, str(here)) == (24, 7.0, (2, 3, 4, "none"), "tp2 pp3 dp4 mb1")
    assert str(replace(here, sharding="zero3", is_offloaded=True)) == "tp2 pp3 dp4 mb1 zero3 offloaded"
    quick, small, worse, same = (
        way(time_s=1.0, work=5.0),
        way(time_s=2.0, work=3.0),
        way(time_s=3.0, work=4.0),
        way(time_s=1.0, work=5.0, resident=1.0),
    )
    assert undominated([worse, small, same, quick]) == [quick, small]
    assert micro_batches(24, 2) == [1, 2, 4]
    assert micro_batches(24, 5) == []
    assert micro_batches(16, 1) == [1, 2, 4, 8]
    a, b, c = Mesh(first=0, num_devices=2), Mesh(first=2, num_devices=2), Mesh(first=0, num_devices=4)
    assert (a.overlaps(b), b.overlaps(c), c.overlaps(a), str(b)) == (False, True, True, "2-3")
    assert mesh_sizes(SimpleNamespace(num_devices=6)) == (1, 2, 4)
    assert [m.first for m in meshes(SimpleNamespace(num_devices=6), 2)] == [0, 2, 4]
    cluster = SimpleNamespace(num_devices=4, devices_per_node=2)
    job = SimpleNamespace(models={"actor": SimpleNamespace(num_layers=2)}, cluster=cluster)
    assert list(cuts(job, "actor", [4])) == [(1, 1, 4), (1, 2, 2), (2, 1, 2), (2, 2, 1)]


def evaluator():
    """A call that writes, one that scores on a model of its own, and one that trains what the first ran."""
    calls = [
        SimpleNamespace(name="write", role="actor", kind="generate", needs=()),
        SimpleNamespace(name="score", role="reward", kind="infer", needs=("write",)),
        SimpleNamespace(name="learn", role="actor", kind="train", needs=("score",)),
        SimpleNamespace(name="aside", role="reward", kind="infer", needs=()),
    ]
    link = SimpleNamespace(each_way_bytes_per_s=10.0), SimpleNamespace(each_way_bytes_per_s=2.0)
    cluster = SimpleNamespace(device=SimpleNamespace(scaleup=link[0], scaleout=link[1]), devices_per_node=2)
    models = {"actor": SimpleNamespace(num_parameters=50), "reward": SimpleNamespace(num_parameters=9)}
    return Evaluator(SimpleNamespace(calls=calls, models=models, cluster=cluster, room_bytes=40.0))


def placed(first, size, seconds, **given):
    return Placed(mesh=Mesh(first=first, num_devices=size), way=way(dp=size, time_s=seconds, **given))


def test_turns_by_hand(monkeypatch):
    """Writing takes 5 s, its parameters 1 s before; scoring waits for it, what stands aside does not."""
    here = evaluator()
    assert (here.home, here.bytes) == ([2, -1, -1, -1], [100.0, 18.0, 100.0, 18.0])
    monkeypatch.setattr("orrery.planner.rlhf.plan.reallocation_s", lambda cluster, size, source, target: size / 100)
    plan = here.plan([placed(0, 2, 5.0), placed(2, 1, 3.0), placed(0, 4, 7.0), placed(3, 1, 2.0)])
    assert [(t.start_s, t.moved_s, t.end_s) for t in plan.turns] == [(0, 1, 6), (6, 0, 9), (9, 0, 16), (0, 0, 2)]
    assert (plan.time_s, plan.fits) == (16.0, True)
    shared = here.plan([placed(0, 2, 5.0), placed(2, 1, 3.0), placed(0, 4, 7.0), placed(0, 2, 2.0)])
    # of two that could start at once the first of the job goes first
    assert [(t.start_s, t.end_s) for t in shared.turns] == [(0, 6), (6, 9), (9, 16), (6, 8)]


def test_shards_of_single_parameters_are_gathered():
    """100 bytes over two devices of one cut each: twice 50 on the node's link; over nodes 2 B/s."""
    here = evaluator()
    sharded = placed(0, 2, 7.0, sharding="zero3")
    calls = [placed(0, 2, 5.0), placed(2, 1, 3.0), sharded, placed(3, 1, 2.0)]
    assert here.moved_s(calls, 0) == 10.0
    assert here.moved_s([sharded, *calls[1:]], 0) == 0.0
    assert here.moved_s(calls, 1) == 0.0
    assert here.moved_s([placed(2, 2, 5.0), *calls[1:]], 0) == 50.0
    assert here.moved_s([sharded, calls[1], placed(0, 2, 7.0), calls[3]], 0) == 5.0


def test_the_fullest_device_by_hand():
    """Device 0 keeps 3 + 20 and needs 9 at most; a copy of what the training cut holds is not needed."""
    here = evaluator()
    given = [
        placed(0, 2, 1.0, resident=3.0, weights=4.0, work=5.0),
        placed(2, 1, 1.0, resident=30.0, weights=1.0, work=1.0),
        placed(0, 2, 1.0, resident=20.0, weights=2.0, work=6.0),
        placed(3, 1, 1.0, resident=1.0),
    ]
    assert here.memory_bytes(given) == 32.0  # device 2
    given[1] = placed(2, 1, 1.0)
    assert here.memory_bytes(given) == 23.0 + 8.0  # training needs 2 + 6; writing shares its cut: 5
    given[0] = Placed(mesh=given[0].mesh, way=replace(given[0].way, tp=2, dp=1))
    assert here.memory_bytes(given) == 23.0 + 9.0
    assert not here.plan([placed(0, 2, 1.0, resident=41.0), *given[1:]]).fits

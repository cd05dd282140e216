"""Ways of RLHF calls and plans made by rule, on stand-ins with round numbers; families of layouts."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.execution.memory import Infeasible
from orrery.planner.rlhf import baselines, ways
from orrery.planner.rlhf.mesh import Mesh
from orrery.planner.rlhf.plan import Evaluator, Placed
from orrery.planner.rlhf.search import greedy
from orrery.planner.rlhf.ways import CallPlacement, generate_ways, infer_ways, train_ways, worth_having
from orrery.planner.training import space
from orrery.planner.training.space import Family, FixedSettings


def way(tp=1, pp=1, dp=1, time_s=1.0, resident=0.0, weights=0.0, work=0.0, batch=1, **more):
    return CallPlacement(
        tp=tp,
        pp=pp,
        dp=dp,
        micro_batch=batch,
        time_s=time_s,
        resident_bytes=resident,
        weights_bytes=weights,
        work_bytes=work,
        **more,
    )


@dataclass(frozen=True)
class Job:
    """Eight devices in nodes of four, 16 prompts of 100 tokens in four mini-batches; a model of 10 layers."""

    batch: int = 16
    num_mini_batches: int = 4
    num_epochs: int = 1
    output_tokens: int = 11
    seq_len: int = 100
    room_bytes: float = 200.0
    trained: tuple[str, ...] = ("actor",)
    cluster: object = None
    models: object = None
    calls: tuple[object, ...] = ()
    asked: list[object] = field(default_factory=list)

    def training_job(self, role, num_sequences, framework=None):
        self.asked.append((role, num_sequences))
        usual = SimpleNamespace(overlaps_parameters=False, logits_bytes=2.0, fixed_bytes=1000.0)
        return SimpleNamespace(framework=framework or usual, model=SimpleNamespace(hidden_size=3))

    def trains(self, role):
        return role in self.trained


def job(devices=8, **given):
    link = SimpleNamespace(each_way_bytes_per_s=10.0)
    cluster = SimpleNamespace(num_devices=devices, devices_per_node=4, device=SimpleNamespace(host=link, scaleup=link))
    model = SimpleNamespace(num_layers=10, num_parameters=50, embedding_parameters=10, name="m")
    return Job(cluster=cluster, models=dict.fromkeys(("actor", "critic", "reference", "reward"), model), **given)


def test_updates_are_mini_batches_of_a_training_step(monkeypatch):
    """Four steps of 2 s; state 3 + 4 + 5 on the first stage, twice that on the last; the rest of each is work."""

    def held(scale, total):
        parts = {n: np.full(9, scale * x) for n, x in (("weights", 3.0), ("gradients", 4.0), ("optimizer", 5.0))}
        return SimpleNamespace(parts=parts, total=np.full(9, total))

    steps = SimpleNamespace(first=held(1.0, 30.0), last=held(2.0, 40.0), time_s=np.full(9, 2.0))
    monkeypatch.setattr(ways, "step_of", lambda job, columns: steps)
    given = job()
    found = train_ways(given, "actor", [(2, 2, 2), (8, 1, 1)])
    assert given.asked == [("actor", 4)]
    assert [(w.dp, w.micro_batch) for w in found] == [(2, 1), (2, 2), (1, 1), (1, 2), (1, 4)]
    assert {(w.time_s, w.resident_bytes, w.weights_bytes, w.work_bytes) for w in found} == {(8.0, 24.0, 0.0, 18.0)}
    assert {w.sharding for w in found} == {"none"}
    assert [w.sharding for w in train_ways(given, "actor", [(1, 1, 2)], sharding="zero3")] == ["zero3", "zero3"]
    assert train_ways(given, "actor", [(1, 1, 8)]) == []


@pytest.fixture
def passes(monkeypatch):
    """A layer takes 1 + 2 + 3 s forward, the head 5 s, a gather 9 s, a hop 4 s; 7 parameters a layer, 100 and 60 at the
    ends, 11 bytes of activations, 13 logits."""
    unit = SimpleNamespace
    pace = unit(forward_s=np.ones(9), tensor_forward_s=np.full(9, 2.0), host_forward_s=np.full(9, 3.0))
    units = unit(
        num_layers=10,
        layer=unit(dense_parameters=np.full(9, 7.0), everything_bytes=np.full(9, 11.0)),
        embedding=unit(parameters=np.full(9, 100.0)),
        head=unit(parameters=np.full(9, 60.0), logit_elements=np.full(9, 13.0)),
        choice=unit(tp=np.ones(9)),
    )
    moved = []

    def collective_s(job, kind, count, stride, size):
        moved.append((kind, np.array(size).tolist()))
        return np.full(len(size), 4.0 if kind == "send_recv" else 9.0)

    monkeypatch.setattr(ways, "choices", lambda x: (None, np.arange(len(x.tp))))
    monkeypatch.setattr(ways, "units", lambda job, choice: units)
    monkeypatch.setattr(ways, "layer_pace", lambda units: pace)
    monkeypatch.setattr(ways, "end_pace", lambda units, head: (np.full(9, 5.0), None))
    monkeypatch.setattr(ways, "network_ratio", lambda units, ranks: np.full(9, 2.0))
    monkeypatch.setattr(ways, "collective_s", collective_s)
    return moved


def test_reading_is_micro_batches_behind_each_other(passes):
    """One stage: 16 turns of 10 x 6 + 5 s; 2 x (70 + 160) bytes of weights; work 11 + 2 x 13 + 1000."""
    whole = infer_ways(job(), "actor", [(1, 1, 1)])
    assert [(w.micro_batch, w.time_s) for w in whole] == [(1, 1040.0), (2, 520.0), (4, 260.0), (8, 130.0)]
    assert {(w.resident_bytes, w.weights_bytes, w.work_bytes) for w in whole} == {(0.0, 460.0, 1037.0)}
    # three stages of four layers: 8 + 2 turns of 29 s, two hops; the larger end
    piped = infer_ways(job(), "actor", [(1, 3, 2)])[0]
    assert (piped.time_s, piped.weights_bytes) == (10 * 29.0 + 8.0, 2 * 128.0)
    assert passes[-1] == ("send_recv", [600.0, 1200.0, 2400.0, 4800.0])  # two bytes, 100 tokens, three wide
    infer_ways(job(), "actor", [(2, 2, 1)])
    assert passes[-1][1][0] == 300.0  # each tensor rank hands over its half


def test_a_frozen_model_stays_or_comes_up_from_the_host(passes):
    stays, waits = infer_ways(job(), "reward", [(1, 1, 16)])
    assert (stays.resident_bytes, stays.weights_bytes, stays.is_offloaded) == (460.0, 0.0, False)
    assert (waits.resident_bytes, waits.weights_bytes, waits.is_offloaded) == (0.0, 460.0, True)
    assert waits.time_s == stays.time_s + 46.0


def test_dealt_out_parameters_are_gathered_for_every_layer(passes):
    """9 s at twice the network's ratio: 6 + 18 s a layer, or 18 where they are gathered beside the work."""
    found = infer_ways(job(), "actor", [(1, 1, 4)], sharding="zero3")[0]
    assert found.time_s == 4 * (240.0 + 5.0)
    assert (found.weights_bytes, found.work_bytes) == (115.0, 1037.0 + 28.0)
    assert ("all_gather", [14.0] * 3) in passes
    beside = SimpleNamespace(overlaps_parameters=True, logits_bytes=2.0, fixed_bytes=1000.0)
    assert infer_ways(job(), "actor", [(1, 1, 4)], framework=beside, sharding="zero3")[0].time_s == 4 * (180.0 + 5.0)


class Writing:
    """A wave of n prompts takes n + 20 s, two seconds a step; weights 30 / tp and 3 bytes a prompt."""

    def __init__(self, job, role):
        pass

    def run(self, tp, pp, batch, waves=1):
        return SimpleNamespace(
            time_s=waves * (batch + 20.0),
            step_s=2.0,
            num_steps=10 * waves,
            weights_bytes=30.0 / tp,
            work_bytes=3.0 * batch,
        )


def test_writing_in_waves(monkeypatch):
    monkeypatch.setattr(ways, "Generation", Writing)
    found = generate_ways(job(), "actor", [(2, 2, 2), (1, 1, 16)])
    assert [(w.dp, w.micro_batch, w.time_s, w.weights_bytes, w.work_bytes) for w in found] == [
        (2, 1, 28.0, 15.0, 24.0),
        (2, 2, 48.0, 15.0, 12.0),
        (2, 4, 88.0, 15.0, 6.0),  # eight waves would leave a prompt for two stages
        (16, 1, 21.0, 30.0, 3.0),
    ]


def test_ways_that_fit_and_are_not_beaten():
    given = [way(dp=2, time_s=1.0, work=150.0), way(dp=2, time_s=2.0, work=160.0), way(tp=2, work=201.0)]
    given += [way(tp=2, work=200.0), way(dp=4, resident=1.0)]
    assert worth_having(job(), given) == {2: (given[0], given[3]), 4: (given[4],)}


def test_engines_take_as_few_devices_as_leave_half_to_caches(monkeypatch):
    """100 bytes of weights on one device of 200 are half: enough; of 180 it takes two."""
    monkeypatch.setattr(baselines, "Generation", Writing)
    assert [(w.tp, w.dp, w.micro_batch) for w in baselines._engines(job(), "actor", 4)] == [
        (1, 4, 1),
        (1, 4, 2),
        (1, 4, 4),
    ]
    tight = baselines._engines(job(room_bytes=180.0), "actor", 4)
    assert [(w.tp, w.dp, w.time_s, w.resident_bytes) for w in tight][:2] == [(2, 2, 28.0, 15.0), (2, 2, 48.0, 15.0)]
    assert baselines._engines(job(room_bytes=20.0), "actor", 4)[0].tp == 4
    assert [w.micro_batch for w in baselines._engines(job(room_bytes=50.0), "actor", 1)] == [4, 8]  # 30 + 12 bytes


def test_writing_from_dealt_out_parameters(monkeypatch):
    """Ten layers of 8 bytes are gathered in 0.5 s each, times 3: 15 s a token, more than the 2 s of a step."""
    monkeypatch.setattr(baselines, "Generation", Writing)
    sizes = []

    def collective_s(training, kind, count, stride, size):
        sizes.append((kind, int(count[0]), float(size[0])))
        return np.array([0.5])

    monkeypatch.setattr(baselines, "collective_s", collective_s)
    framework = SimpleNamespace(network_ratio=3.0, scaleout_ratio=0.1)
    found = baselines._gathered_generation(job(), "actor", 4, framework)
    assert sizes == [("all_gather", 4, 8.0)]
    # eleven tokens of 15 s, and a first pass of 15 s less a step
    assert [(w.micro_batch, w.time_s) for w in found] == [(1, 178.0), (2, 356.0), (4, 712.0)]
    assert [w.work_bytes for w in found] == [12.0 + 16.0, 6.0 + 16.0, 3.0 + 16.0]
    far = baselines._gathered_generation(job(), "actor", 8, framework)  # 0.5 s a token over the network's 0.1
    assert far[0].time_s == pytest.approx(11 * 2.0 + (22.0 - 20.0) - 2.0)
    assert baselines._gathered_generation(job(), "actor", 5, framework) == []


def calls(*kinds):
    return tuple(SimpleNamespace(name=n, role=r, kind=k, needs=()) for n, r, k in kinds)


FIVE = calls(
    ("generate", "actor", "generate"),
    ("reference", "reference", "infer"),
    ("reward", "reward", "infer"),
    ("values", "critic", "infer"),
    ("train actor", "actor", "train"),
    ("train critic", "critic", "train"),
)


def test_five_groups_side_by_side(monkeypatch):
    """Of eight devices a quarter each trains, writes and trains the critic, an eighth each only reads."""
    monkeypatch.setattr(baselines, "_engines", lambda job, role, size: [way(dp=size, resident=1.0)])
    sharded = []

    def ways_of(job, role, kind, size, framework):
        sharded.append((role, kind, size, job.num_mini_batches))
        return [way(dp=size, resident=2.0)]

    monkeypatch.setattr(baselines, "_sharded", ways_of)
    monkeypatch.setattr("orrery.planner.rlhf.plan.reallocation_s", lambda *_: 0.0)
    plan = baselines.disjoint(job(calls=FIVE), None)
    assert [str(p.mesh) for p in plan.placed] == ["2-3", "6-6", "7-7", "4-5", "0-1", "4-5"]
    assert sharded[0] == ("reference", "infer", 1, 4)
    assert plan.memory_bytes == 4.0
    few = baselines.disjoint(job(devices=4, calls=FIVE), None)
    assert (few.need, few.have) == (5.0, 4.0)
    monkeypatch.setattr(baselines, "_engines", lambda *_: [])
    assert "sequences" in baselines.disjoint(job(calls=FIVE), None).unit


def test_the_fastest_way_that_leaves_room_for_what_is_kept():
    """80 and 90 bytes are kept on one mesh of 200: 30 are left for work."""
    given = job(calls=calls(("a", "actor", "train"), ("b", "critic", "train")))
    first = [way(time_s=1.0, resident=80.0, work=31.0), way(time_s=2.0, resident=80.0, work=30.0)]
    second = [way(time_s=1.0, resident=90.0, work=40.0), way(time_s=2.0, resident=95.0, work=34.0)]
    both = [Mesh(first=0, num_devices=1)] * 2
    plan = baselines._fastest_that_fits(Evaluator(given), [first, second], both)
    assert [p.way for p in plan.placed] == [first[1], second[1]]  # the second has none that fits: its leanest
    apart = [Mesh(first=0, num_devices=1), Mesh(first=1, num_devices=1)]
    plan = baselines._fastest_that_fits(Evaluator(given), [first, second], apart)
    assert [p.way for p in plan.placed] == [first[0], second[0]]


def test_one_layout_for_every_call(monkeypatch):
    """Four tensor ranks of eight devices: one stage with two copies, or two stages; offloaded ways do not count."""
    both = calls(("a", "actor", "train"), ("b", "critic", "train"))
    by_size = {
        8: (
            way(tp=4, dp=2, time_s=3.0, resident=150.0),
            way(tp=4, pp=2, time_s=5.0, resident=60.0),
            way(tp=4, pp=2, time_s=1.0, is_offloaded=True),
        )
    }
    found = baselines.symmetric(SimpleNamespace(job=job(calls=both), ways=(by_size, by_size)))
    assert [(p.way.pp, str(p.mesh)) for p in found.placed] == [(2, "0-7"), (2, "0-7")]
    assert found.time_s == 10.0
    none = baselines.symmetric(SimpleNamespace(job=job(calls=both, room_bytes=119.0), ways=(by_size, by_size)))
    assert isinstance(none, Infeasible)
    assert (none.need, none.have) == (120.0, 119.0)
    fast = greedy(SimpleNamespace(ways=(by_size, {8: by_size[8][:2], 1: (way(time_s=4.0),)})))
    assert [(p.way.time_s, str(p.mesh)) for p in fast] == [(1.0, "0-7"), (3.0, "0-7")]
    assert isinstance(fast[0], Placed)


def test_mini_batches_leave_every_rank_a_sequence():
    assert baselines._with_room(job(), 2).num_mini_batches == 4
    assert baselines._with_room(job(), 8).num_mini_batches == 2
    assert baselines._with_room(job(), 32).num_mini_batches == 1
    assert baselines._with_room(job(batch=50, num_mini_batches=5), 16).num_mini_batches == 2  # three do not divide 50
    fits = SimpleNamespace(fits=True, memory_bytes=1.0, capacity_bytes=2.0)
    assert baselines._checked(fits, "x") is fits
    full = SimpleNamespace(fits=False, memory_bytes=3.0, capacity_bytes=2.0)
    assert baselines._checked(full, "x").need == 3.0
    assert sum(baselines.PARTS.values()) == 8


@pytest.fixture
def layers_of(monkeypatch):
    """Twelve heads; no experts unless said; fast links join four devices."""
    monkeypatch.setattr(space, "fast_domain", lambda job: 4)
    monkeypatch.setattr(space, "head_counts", lambda job: (12, 24))

    def families(devices, fixed=None, layers=12, batch=16, seq_len=4096, experts=0):
        monkeypatch.setattr(space, "num_experts", lambda job: experts)
        blocks = [SimpleNamespace(count=layers)]
        given = SimpleNamespace(
            cluster=SimpleNamespace(num_devices=devices, devices_per_node=4),
            model=SimpleNamespace(blocks=blocks, encoder=[]),
            seq_len=seq_len,
            global_batch=batch,
        )
        return [(f.tp, f.cp, f.pp, f.dp, f.ep, f.etp) for f in space.families(given, fixed or FixedSettings())]

    return families


def test_families_use_all_devices_and_divide_heads_layers_and_batch(layers_of):
    """A context of 4096 may be cut in two; four devices: tp x cp x pp x dp."""
    assert layers_of(4) == [
        (1, 1, 1, 4, 1, 1),
        (1, 1, 2, 2, 1, 1),
        (1, 1, 4, 1, 1, 1),
        (1, 2, 1, 2, 1, 1),
        (1, 2, 2, 1, 1, 1),
        (2, 1, 1, 2, 1, 1),
        (2, 1, 2, 1, 1, 1),
        (2, 2, 1, 1, 1, 1),
        (4, 1, 1, 1, 1, 1),
    ]
    assert all(f[1] == 1 for f in layers_of(4, seq_len=4095))
    assert {f[0] for f in layers_of(16, batch=16)} == {1, 2, 4}  # eight does not divide twelve heads
    assert {f[3] for f in layers_of(8, batch=2)} == {1, 2}
    # 13 layers on two stages are 14 places, 8 % more; on four 16, 23 %; of three layers no more than three stages
    assert {f[2] for f in layers_of(8, layers=13)} == {1, 2}
    assert {f[2] for f in layers_of(8, layers=20)} == {1, 2, 4}
    assert {f[2] for f in layers_of(8, layers=1)} == {1}
    assert layers_of(4, FixedSettings(tp=2, pp=2)) == [(2, 1, 2, 1, 1, 1)]
    assert {f[3] for f in layers_of(4, FixedSettings(dp=2))} == {2}


def test_families_of_a_mixture(layers_of):
    found = layers_of(2, experts=4, seq_len=100)
    assert found == [
        (1, 1, 1, 2, 1, 1),
        (1, 1, 1, 2, 2, 1),
        (1, 1, 2, 1, 1, 1),
        (2, 1, 1, 1, 1, 1),
        (2, 1, 1, 1, 1, 2),
        (2, 1, 1, 1, 2, 1),
    ]
    assert layers_of(2, FixedSettings(ep=2, etp=1), experts=4, seq_len=100) == [found[1], found[5]]


def test_what_varies_inside_a_family():
    def family(**given):
        return Family(**({"tp": 1, "cp": 1, "pp": 1, "dp": 2, "ep": 1, "etp": 1} | given))

    given = SimpleNamespace(global_batch=256)
    assert space._micro_batches(given, FixedSettings(), family()) == [1, 2, 4, 8, 16, 32, 64]
    assert space._micro_batches(given, FixedSettings(micro_batch=3), family()) == [3]
    assert [space._sequences(FixedSettings(), family(tp=t)) for t in (1, 2)] == [[False], [True]]
    assert space._sequences(FixedSettings(is_sequence_parallel=False), family(tp=2)) == [False]
    assert [space._rings(FixedSettings(), family(cp=c)) for c in (1, 2)] == [["ring"], ["ring", "all-to-all"]]
    assert space._rings(FixedSettings(context_kind="all-to-all"), family(cp=2)) == ["all-to-all"]
    few = SimpleNamespace(global_batch=4)
    assert space.choice_keys(few, FixedSettings(), family(tp=2, cp=2)) == [
        (2, 2, 1, 1, micro, 1, ring) for micro in (1, 2) for ring in (1, 0)
    ]

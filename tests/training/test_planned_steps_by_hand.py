"""Steps under a plan of state, updates through memory, and rates of steps, from parts of round numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.train.layout import TrainingLayout
from orrery.training import step, sync
from orrery.training.columns import columns_of
from orrery.training.levels import Level, Topology
from orrery.training.memory import _state
from orrery.training.partition import step as planned
from orrery.training.partition.step import PartitionedStep, partitioned_step
from orrery.training.partition.traffic import Exchange, Traffic
from orrery.training.placement.graph import Graph, Tensor, add
from orrery.training.placement.signature import signatures
from orrery.training.schedules.registry import get_schedule
from orrery.training.stage_layers import by_chunk, by_rank, rest_of, stage_layers
from orrery.training.state_plan import WIDE, Plan
from orrery.training.sync import Stage, update_s


def one(value):
    return np.array([float(value)])


TOPOLOGY = Topology(
    levels=(
        Level(name="node", num_devices=4, link=None),
        Level(name="system", num_devices=8, link=None, is_network=True),
    )
)
PLAN = Plan(name="p", weights="node", gradients="node", optimizer="system")


def job(**given):
    framework = SimpleNamespace(overlaps_parameters=False, contention_ratio=1.0)
    usual = {
        "framework": framework,
        "cluster": SimpleNamespace(num_devices=8),
        "global_batch": 48,
        "task": "pretrain",
        "model": SimpleNamespace(encoder=(), blocks=(SimpleNamespace(count=3), SimpleNamespace(count=2))),
    }
    return SimpleNamespace(**(usual | given))


@pytest.fixture
def parts(monkeypatch):
    """Five layers of 1000 parameters, three rounds of two sequences a device; a collective takes a second a member."""
    told = {}
    names = {"forward": 10, "backward": 20, "weight gradients": 30, "recomputation": 5, "launches": 1, "update": 2}
    made = SimpleNamespace(
        parts={name: one(s) for name, s in (names | {"once a step": 3, "sharding": 99}).items()},
        columns=SimpleNamespace(dp=np.array([8])),
        model_flops=one(480.0),
    )

    def traffic(plan, topology, elements, step_elements):
        told["elements"] = (elements, step_elements)
        kinds = [("forward", 2), ("backward", 3), ("gradients", 4), ("step", 6)]
        return Traffic(
            **{
                name: (Exchange(what=name, kind="x", num_devices=n, stride=1, elements=1.0, wire=WIDE),)
                for name, n in kinds
            }
        )

    monkeypatch.setattr(planned, "_plain", lambda *_: (made, 5000.0))
    monkeypatch.setattr(planned, "traffic_of", traffic)
    monkeypatch.setattr(planned, "exchange_s", lambda job, topology, e: float(e.num_devices))
    monkeypatch.setattr(planned, "_held", lambda *_: {"weights": 7.0, "buffers": 2.0})
    return told


def test_a_step_under_a_plan(parts):
    """48 / (8 x 2) = 3 rounds of five layers: 15 gathers of 2 s, 15 of 3 s and 15 reductions of 4 s; once 6 s."""
    found = partitioned_step(job(), TOPOLOGY, PLAN, micro_batch=2)
    assert parts["elements"] == (1000.0, 5000.0)
    assert found.exchanges == {"forward": 30.0, "backward": 45.0, "gradients": 60.0, "step": 6.0}
    assert found.parts["gathering"] == 30.0
    assert found.parts["gathering again, reducing"] == 105.0
    assert found.parts["once a step, between groups"] == 6.0
    assert "sharding" not in found.parts
    assert found.time_s == pytest.approx(71.0 + 30.0 + 105.0 + 6.0)
    assert (found.memory_bytes, found.num_devices) == (9.0, 8)
    assert found.model_flops_per_s_per_device == pytest.approx(480 / 212 / 8)
    hidden = partitioned_step(
        job(framework=SimpleNamespace(overlaps_parameters=True, contention_ratio=1.1)), TOPOLOGY, PLAN, micro_batch=2
    )
    assert hidden.parts["gathering"] == pytest.approx(20.0 + 1.0)
    assert hidden.parts["gathering again, reducing"] == pytest.approx(50.0 + 5.5)


def test_plans_that_do_not_fit_the_job(parts):
    for wrong, says in (
        (job(cluster=SimpleNamespace(num_devices=16)), "hold 8 devices, the job has 16"),
        (job(global_batch=50), "write 48"),
        (job(global_batch=9), "write 16"),
        (job(task="lora"), "few parameters"),
    ):
        with pytest.raises(ScenarioError, match=says):
            partitioned_step(wrong, TOPOLOGY, PLAN, micro_batch=2)


def test_the_fastest_plan_that_fits(monkeypatch):
    """One micro-batch a device: a power of two as long as 100 bytes hold 9 a sequence."""

    def step_of(job, topology, plan, micro_batch=1, recompute="none"):
        assert job.global_batch == micro_batch * 8
        return SimpleNamespace(memory_bytes=9.0 * micro_batch)

    monkeypatch.setattr(planned, "partitioned_step", step_of)
    monkeypatch.setattr(planned, "room_bytes", lambda job: 72.0)
    monkeypatch.setattr(planned, "replace", lambda job, global_batch: SimpleNamespace(global_batch=global_batch))
    assert planned.largest_fitting(SimpleNamespace(seq_len=99), TOPOLOGY, PLAN) == 8
    assert planned.largest_fitting(SimpleNamespace(seq_len=4), TOPOLOGY, PLAN) == 4
    monkeypatch.setattr(planned, "room_bytes", lambda job: 8.0)
    assert planned.largest_fitting(SimpleNamespace(seq_len=99), TOPOLOGY, PLAN) == 0


# --- updates


HELD = Stage(
    dense_parameters=one(4096.0),
    expert_parameters=one(2048.0),
    trained_parameters=one(512.0),
    layer_dense_parameters=one(1.0),
    layer_expert_parameters=one(1.0),
    embedding_parameters=one(0.0),
    head_parameters=one(0.0),
)


def updated(monkeypatch, task="pretrain", recipe=None, **layout):
    """Bytes that an update moves, from rows of 1024 additions of six bytes; twice as slow as measured."""
    told = []

    def predict(op, device, library):
        told.append(int(op.tokens[0]))
        return SimpleNamespace(time_s=one(1.0))

    monkeypatch.setattr(sync.kernels, "predict", predict)
    framework = {"gradient_bytes": 4.0, "moments_bytes": 8.0, "master_bytes": 4.0, "weights_bytes": 2.0}
    usual = {"gradient_bytes": 0.0, "moments_bytes": 0.0, "master_bytes": -1.0, "weights_bytes": 0.0, "weight_casts": 0}
    given = SimpleNamespace(
        framework=SimpleNamespace(**framework, elementwise_ratio=2.0, kernels=""),
        recipe=SimpleNamespace(**(usual | (recipe or {}))),
        cluster=SimpleNamespace(device=None),
        task=task,
    )
    x = columns_of([TrainingLayout(**layout)])
    seconds = float(update_s(given, x, HELD)[0])
    return seconds, (told[0] if told else None)


def rows(moved):
    return int(moved / 6 / 1024)


def test_bytes_of_an_update(monkeypatch):
    """Gradients, moments and master read and written, 2-byte weights written: 34 bytes for each of 6144 parameters,
    whose gradients of 4 bytes are zeroed."""
    assert updated(monkeypatch) == (2.0, rows(34 * 6144 + 4 * 6144))
    assert updated(monkeypatch, "forward_backward") == (0.0, None)
    # without a master copy the weights themselves are read and written
    assert updated(monkeypatch, recipe={"master_bytes": 0.0})[1] == rows(28 * 6144 + 4 * 6144)
    lean = {"gradient_bytes": 2.0, "moments_bytes": 2.0, "weights_bytes": 1.0, "master_bytes": 2.0}
    assert updated(monkeypatch, recipe=lean)[1] == rows(13 * 6144 + 2 * 6144)
    # each cast reads two bytes and writes one
    assert updated(monkeypatch, recipe={"weight_casts": 2})[1] == rows(38 * 6144 + 6 * 6144)


def test_updates_of_shares(monkeypatch):
    """Four ranks update a quarter each; experts a half of theirs where two hold the same; gradients are zeroed whole
    but where they are sharded too."""
    assert updated(monkeypatch, dp=4, sharding="zero1")[1] == rows(34 * 6144 / 4 + 4 * 6144)
    two = updated(monkeypatch, dp=4, ep=2, sharding="zero1")[1]
    assert two == rows(34 * (4096 / 4 + 2048 / 2) + 4 * 6144)
    assert updated(monkeypatch, dp=4, sharding="zero2")[1] == rows(34 * 6144 / 4)
    # of few trained parameters only those are updated
    assert updated(monkeypatch, "lora")[1] == rows(34 * 512 + 4 * 512)
    assert updated(monkeypatch, "lora", dp=4, sharding="zero1")[1] == rows(34 * 512 / 4 + 4 * 512)


def state_of(task="pretrain", recipe=None, base="", **layout):
    """Bytes of weights, gradients and optimizer state of two copies of the parameters."""
    framework = {"gradient_bytes": 4.0, "moments_bytes": 8.0, "master_bytes": 4.0, "weights_bytes": 2.0}
    usual = {"gradient_bytes": 0.0, "moments_bytes": 0.0, "master_bytes": -1.0, "weights_bytes": 0.0}
    given = SimpleNamespace(
        framework=SimpleNamespace(**framework),
        recipe=SimpleNamespace(**(usual | {"weight_copy_bytes": 0.0} | (recipe or {}))),
        task=task,
        base_format=base,
    )
    return [float(v[0]) for v in _state(given, columns_of([TrainingLayout(**layout)]), HELD, 2.0)]


def test_bytes_of_state():
    """Two copies of 6144 parameters of 2 bytes, their gradients of 4; master and moments of 12 once."""
    assert state_of() == [2 * 2 * 6144, 2 * 4 * 6144, 12 * 6144]
    assert state_of(dp=4, sharding="zero1") == [2 * 2 * 6144, 2 * 4 * 6144, 12 * 6144 / 4]
    assert state_of(dp=4, sharding="zero2") == [2 * 2 * 6144, 2 * 4 * 6144 / 4, 12 * 6144 / 4]
    assert state_of(dp=4, sharding="zero3") == [2 * 2 * 6144 / 4, 2 * 4 * 6144 / 4, 12 * 6144 / 4]
    # a pipeline keeps what it gathered, and reduces once
    assert state_of(dp=4, pp=2, sharding="zero3")[1] == 2 * 4 * 6144
    experts = state_of(dp=4, ep=2, sharding="zero1")
    assert experts[2] == 12 * (4096 / 4 + 2048 / 2)
    assert state_of("forward_backward")[2] == 0.0
    lean = {"gradient_bytes": 2.0, "moments_bytes": 2.0, "weights_bytes": 1.0, "master_bytes": 0.0}
    assert state_of(recipe=lean) == [2 * 6144, 2 * 2 * 6144, 2 * 6144]


def test_state_of_few_trained_parameters():
    """Frozen weights are cast once, to two bytes; 512 trained ones are held beside them, with all that goes along."""
    assert state_of("lora") == [2 * 2 * 6144 + 2 * 512, 4 * 512, 12 * 512]
    assert state_of("lora", dp=4, sharding="zero1")[2] == 12 * 512 / 4
    assert state_of("lora", recipe={"weight_copy_bytes": 1.0, "weights_bytes": 4.0})[0] == 2 * 6144 + 4 * 512


# --- stages


def layouts(**given):
    return columns_of([TrainingLayout(**given)])


def test_layers_that_told_ends_leave():
    """An end of one layer is told too."""
    rest, sharing = rest_of(12, layouts(pp=4, first_stage_layers=1, last_stage_layers=1))
    assert (rest.tolist(), sharing.tolist()) == ([10], [2])
    rest, sharing = rest_of(12, layouts(pp=4, last_stage_layers=1))
    assert (rest.tolist(), sharing.tolist()) == ([11], [3])
    assert [x.tolist() for x in rest_of(12, layouts(pp=4))] == [[12], [4]]
    told = stage_layers(12, layouts(pp=4, first_stage_layers=2))
    assert (told.num_first[0], told.num_middle[0], told.num_last[0]) == (
        2.0,
        pytest.approx(10 / 3),
        pytest.approx(10 / 3),
    )
    two = stage_layers(12, layouts(pp=2, first_stage_layers=5))
    assert (two.num_first[0], two.num_middle[0], two.num_last[0], two.most[0]) == (5.0, 7.0, 7.0, 7.0)


def test_layers_that_do_not_come_out_even():
    """126 over 16 x 8 leave 7 on both ends and 8 between; 61 over 16 leave 3 on both; 63 over 16 one short."""

    def ends(layers, **given):
        found = stage_layers(layers, layouts(**given))
        return found.num_first[0], found.num_middle[0], found.num_last[0]

    assert ends(126, pp=16, vp=8, schedule="interleaved") == (7.0, 8.0, 7.0)
    assert ends(61, pp=16) == (3.0, 4.0, 3.0)
    assert ends(63, pp=16) == (4.0, 4.0, 3.0)
    assert ends(12, pp=4) == (3.0, 3.0, 3.0)
    assert by_rank(63, TrainingLayout(pp=16)) == (4,) * 15 + (3,)
    assert by_rank(61, TrainingLayout(pp=16)) == (3, *(4,) * 13, 3, 3)
    assert by_chunk(12, TrainingLayout(pp=3, first_stage_layers=2)) == (2, 5, 5)
    assert by_chunk(12, TrainingLayout(pp=2, vp=2, schedule="interleaved", last_stage_layers=4)) == (4, 2, 4, 2)
    assert by_chunk(12, TrainingLayout(pp=4, first_stage_layers=2, last_stage_layers=4)) == (2, 3, 3, 4)


def test_tokens_of_each_device():
    """4800 tokens in 2 s on twelve devices."""
    job_of = SimpleNamespace(tokens_per_step=4800)
    none = SimpleNamespace(total=one(5.0))
    full = SimpleNamespace(total=one(9.0))
    found = step.Steps(
        job=job_of,
        columns=layouts(tp=2, dp=3, pp=2),
        parts={"a": one(1.5), "b": one(0.5)},
        first=none,
        last=none,
        inner=full,
        model_flops=one(1.0),
        hardware_flops=one(1.0),
        wide_frac=one(0.0),
        moved_bytes=one(1.0),
    )
    assert (found.time_s[0], found.tokens_per_s_per_device[0], found.memory_bytes[0]) == (2.0, 200.0, 9.0)
    done = PartitionedStep(plan=PLAN, parts={"a": 1.0}, held={"b": 2.0}, exchanges={}, model_flops=8.0, num_devices=4)
    assert done.model_flops_per_s_per_device == 2.0


def test_partial_operands_of_a_sum():
    """Terms of a sum of values may stay terms; not beside a weight, which never is one."""
    tensors = {
        name: Tensor(name=name, letters="th", shape=(4, 4), role=role)
        for name, role in (("x", "input"), ("y", "input"), ("w", "weight"), ("z", "value"))
    }
    both = add("sum", "x", "y", "z")
    assert both.linear == ((0, 1),)
    graph = Graph(tensors=tensors, ops=(both,), pieces={"t": 4, "h": 4})
    found = [(tuple(map(str, s.inputs)), str(s.output)) for s in signatures(both, graph)]
    assert (("P", "P"), "P") in found
    biased = add("bias", "x", "w", "z")
    graph = Graph(tensors=tensors, ops=(biased,), pieces={"t": 4, "h": 4})
    assert all("P" not in map(str, s.inputs) for s in signatures(biased, graph))


def test_micro_batches_that_a_schedule_holds():
    """Sixteen micro-batches on four ranks: all of GPipe's, as many as ranks of 1F1B's, of which the last holds one."""
    sizes = np.array([4]), np.array([1]), np.array([16])
    held = {}
    for name in ("gpipe", "1f1b", "zero-bubble-h1", "zero-bubble-h2"):
        found = get_schedule(name)(*sizes)
        held[name] = (float(found.in_flight_ratio[0]), float(found.last_in_flight_ratio[0]))
    assert held == {
        "gpipe": (16.0, 16.0),
        "1f1b": (4.0, 1.0),
        "zero-bubble-h1": (4.0, 4.0),
        "zero-bubble-h2": (7.0, 7.0),
    }

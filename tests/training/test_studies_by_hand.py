"""Experiments of training: what their rows say of runs whose outcome is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Run
from orrery.base.knobs import NoKnobs
from orrery.catalog.devices import get_device
from orrery.engine.streams import stream
from orrery.execution.train.layout import TrainingLayout
from orrery.training.islands import step as islands
from orrery.training.small.points import points_of
from orrery.training.small.pricing import price
from orrery.training.small.techniques import mono_forward as mono_work
from orrery.training.small.work import Sizes as Widths
from orrery.training.studies import decentralized_experts, layerwise_update, local_updates, mono_forward, stage_recovery
from orrery.training.worth import energy_bound_j, least_flops, peak_flops_per_s


def asked(steps, sizes, **more):
    """A run that keeps what it was told of progress."""
    told = []
    return Run(seed=3, steps=steps, progress=lambda done, total: told.append((done, total)), sizes=sizes, **more), told


def test_rows_of_layerwise_updates_are_means_of_stretches(monkeypatch):
    """50 losses in 24 stretches: two of three, then twos; a row each for all layers at once and for three orders."""
    calls = []

    def descent(order, groups, steps, seed, hidden):
        calls.append((order, groups, steps, seed, hidden))
        return np.arange(50.0) + 100 * len(calls)

    monkeypatch.setattr(layerwise_update, "layerwise_descent", descent)
    request, told = asked(50, layerwise_update.Sizes(groups=2, hidden="8,4"))
    rows = layerwise_update.run(request)
    assert calls[0] == ("bottom-up", 1, 50, 3, (8, 4))
    assert [c[1] for c in calls[1:]] == [2] * (len(calls) - 1)
    assert told == [(i + 1, len(calls)) for i in range(len(calls))]
    first = [row for row in rows if row["order"] == "all layers"]
    assert len(first) == 24
    assert [row["step"] for row in first[:4]] == [3, 6, 8, 10]
    assert [row["loss"] for row in first[:4]] == [101, 104, 106.5, 108.5]
    assert first[-1] == {"order": "all layers", "step": 50, "loss": 148.5}
    monkeypatch.setattr(layerwise_update, "layerwise_descent", lambda *_: np.array([7.0, 9.0]))
    few = layerwise_update.run(request)[:2]
    assert [(row["step"], row["loss"]) for row in few] == [(1, 7), (2, 9)]
    with pytest.raises(ScenarioError):
        layerwise_update.run(asked(50, layerwise_update.Sizes(groups=4, hidden="8,4"))[0])


def test_rows_of_local_updates_are_last_losses_over_first(monkeypatch):
    """20 steps are five rounds of four or two of ten; 4, 3, 1 ends at a quarter, 4, 2, 3 at three quarters."""
    asks = []

    def descent(**words):
        asks.append((words["num_workers"], words["local_steps"], words["rounds"], words["seed"]))
        return SimpleNamespace(
            losses_ratio=np.array([4.0, 3.0, 1.0]), synchronous_losses_ratio=np.array([4.0, 2.0, 3.0])
        )

    monkeypatch.setattr(local_updates, "stale_outer_descent", descent)
    request, told = asked(20, local_updates.Sizes(local_steps="4,10", workers=3))
    assert local_updates.run(request) == tuple(
        {"update": update, "local_steps": count, "loss_ratio": ratio}
        for count in (4, 10)
        for update, ratio in (("co2", 0.25), ("synchronous", 0.75))
    )
    assert asks == [(3, 4, 5, 3), (3, 10, 2, 3)]
    assert told == [(1, 2), (2, 2)]


def test_rows_of_stage_recovery_are_means_over_moments(monkeypatch):
    """A run of 60 steps loses stages after 20 and 40 of them, and is followed for 30."""
    seen = {}

    def train(shape, steps, moments, seed):
        seen.update(shape=shape, steps=steps, moments=moments, seed=seed)
        return "done"

    def setbacks(done, stages, way, most_steps):
        seen["most"] = most_steps
        return [
            SimpleNamespace(stage=stage, num_steps=10 * moment + stage, loss_jump_ratio=0.5 * moment)
            for stage in stages
            for moment in (1, 2)
        ]

    monkeypatch.setattr(stage_recovery, "train", train)
    monkeypatch.setattr(stage_recovery, "setbacks", setbacks)
    request, told = asked(60, stage_recovery.Sizes(stages=3, hidden=5, ffn=7, vocab=11, batch=13))
    rows = stage_recovery.run(request)
    shape = seen["shape"]
    sizes = (shape.num_stages, shape.hidden_size, shape.ffn_size, shape.vocab_size, shape.num_batch)
    assert sizes == (3, 5, 7, 11, 13)
    assert (seen["steps"], seen["moments"], seen["seed"], seen["most"]) == (60, [20, 40], 3, 30)
    assert [row["way"] for row in rows[::3]] == ["weighted", "mean", "copy", "random"]
    assert [(r["stage"], r["setback_steps"], r["loss_jump_ratio"]) for r in rows[:3]] == [
        (0, 15, 0.75),
        (1, 16, 0.75),
        (2, 17, 0.75),
    ]
    assert told == [(i, 4) for i in (1, 2, 3, 4)]
    stage_recovery.run(asked(2, stage_recovery.Sizes())[0])
    assert (seen["moments"], seen["most"]) == ([1, 1], 2)


def test_errors_of_mixed_flows_are_shares_of_the_exact_flows_variance():
    """Exact flows 1 and 3 have a variance of 1; equal shares of (0, 2) and (3, 5) are 1 and 4: an error of 0.5."""
    of = SimpleNamespace(flow=lambda x, t: np.array([[1.0], [3.0]]))
    flows = np.array([[[0.0], [2.0]], [[3.0], [5.0]]])
    error = decentralized_experts._error_frac(of, None, None, np.full((2, 2), 0.5), flows)
    assert error == pytest.approx((0 + 1) / 2)
    assert decentralized_experts._error_frac(of, None, None, np.array([[0.5, 0.5], [1.0, 0.0]]), flows) == 0


def test_experts_that_never_meet_share_the_points_of_a_step(monkeypatch):
    """One expert has all 64 points of a step, two 32 each; three ways to mix them, one tick an expert and a router."""
    batches, learned = [], decentralized_experts.train_flow

    def train_flow(of, k, hidden, batch, steps, seed):
        batches.append((k, hidden, batch, steps, seed))
        return learned(of, k, hidden, batch, steps, seed)

    monkeypatch.setattr(decentralized_experts, "train_flow", train_flow)
    request, told = asked(3, decentralized_experts.Sizes(experts="1,2", components=4, hidden=4, batch=64))
    rows = decentralized_experts.run(request)
    assert batches == [(0, 4, 64, 3, 3), (0, 4, 32, 3, 3), (1, 4, 32, 3, 3)]
    assert [(row["mixed_by"], row["experts"]) for row in rows] == [
        (way, count) for count in (1, 2) for way in ("router", "exact chances", "equal shares")
    ]
    alone = [row["error_frac"] for row in rows[:3]]
    assert alone[0] == pytest.approx(alone[2]) == pytest.approx(alone[1])
    assert told == [(i, 5) for i in range(1, 6)]
    for wrong in ({"clusters": "far"}, {"spread_ratio": 0.0}, {"experts": "5"}):
        with pytest.raises(ScenarioError):
            decentralized_experts.run(asked(3, decentralized_experts.Sizes(components=4, batch=64, **wrong))[0])


def test_rows_of_learning_rules_count_passes_and_prices(monkeypatch):
    """Trained 5 passes of 100 points in batches of 32: 20 steps, at the mean price of the layers that learn in turn."""
    plans = []

    def learn(data, plan):
        plans.append(plan)
        return SimpleNamespace(accuracy_frac=0.75, passes=5)

    rules = {name: (SimpleNamespace(train=learn), work, turn) for name, (_, work, turn) in mono_forward.RULES.items()}
    monkeypatch.setattr(mono_forward, "RULES", rules)
    x = np.random.default_rng(0).normal(size=(200, 6))
    y = np.arange(200) % 4
    device = get_device("t4")
    request, told = asked(
        40, mono_forward.Sizes(widths="8,4", batch=32, patience=2), data={"x": x, "y": y}, device=device
    )
    rows = mono_forward.run(request)
    assert [(r["rule"], r["stops_early"]) for r in rows] == [(n, s) for s in (True, False) for n in mono_forward.RULES]
    assert [p.patience_passes for p in plans] == [2] * 4 + [41] * 4
    assert {(p.most_passes, p.batch, p.hidden, p.seed) for p in plans} == {(40, 32, (8, 4), 3)}
    assert told == [(i, 8) for i in range(1, 9)]
    row = next(r for r in rows if r["rule"] == "mono-forward")
    assert (row["accuracy_frac"], row["passes"]) == (0.75, 5)
    widths = Widths(inputs=6, hidden=(8, 4), num_classes=4, batch=32)
    first, second = (price(mono_work.rule(widths, unit, NoKnobs()), device) for unit in (0, 1))
    assert row["time_s"] == pytest.approx(20 * (first.time_s + second.time_s) / 2)
    assert row["energy_j"] == pytest.approx(20 * (first.energy_j + second.energy_j) / 2)
    back = next(r for r in rows if r["rule"] == "backpropagation")
    one = price(mono_forward.RULES["backpropagation"][1].rule(widths, 0, NoKnobs()), device)
    assert back["time_s"] == pytest.approx(20 * one.time_s)
    assert back["memory_bytes"] == pytest.approx(one.state_bytes + one.activation_bytes)
    bare, _ = asked(40, mono_forward.Sizes(points=64, batch=32))
    assert set(mono_forward.run(bare)[0]) == {"rule", "stops_early", "accuracy_frac", "passes"}


def test_own_points_are_half_to_train_on_and_a_quarter_each_for_the_rest():
    x = np.arange(40.0).reshape(20, 2)
    data = points_of({"x": x, "y": np.arange(20) % 3}, 5)
    sizes = [len(part.labels) for part in (data.train, data.validation, data.test)]
    assert (sizes, data.num_classes) == ([10, 5, 5], 3)
    order = stream(5, "experiment/data").permutation(20)
    assert data.train.labels.tolist() == (order[:10] % 3).tolist()
    assert data.test.labels.tolist() == (order[15:] % 3).tolist()


# --- what steps are worth, and stages of islands


def test_least_operations_and_energy_of_a_step():
    """Weights of 1000 and 3 x 500: 2 operations forward and 4 back for each of 64 tokens; frozen ones 2 back."""
    device = get_device("h100-sxm")
    blocks = [
        SimpleNamespace(count=1, linears=[SimpleNamespace(num_parameters=1000)]),
        SimpleNamespace(count=3, linears=[SimpleNamespace(num_parameters=500)]),
    ]

    def job(task="pretrain", format="bf16"):
        return SimpleNamespace(
            task=task,
            model=SimpleNamespace(blocks=blocks),
            tokens_per_step=64,
            cluster=SimpleNamespace(device=device),
            recipe=SimpleNamespace(forward_format=format, wide_format="bf16"),
        )

    assert least_flops(job()) == 6 * 2500 * 64
    assert least_flops(job("lora")) == 4 * 2500 * 64
    assert peak_flops_per_s(job()) == device.dense_flops_per_s["bf16"]
    assert peak_flops_per_s(job(format="fp8")) == device.dense_flops_per_s["fp8"]
    columns = SimpleNamespace(tp=np.array([2.0]), cp=np.array([1.0]), pp=np.array([3.0]), dp=np.array([4.0]))
    busy_s, span_w = 6 * 2500 * 64 / 24 / device.dense_flops_per_s["bf16"], device.power_limit_w - device.idle_power_w
    watts = device.idle_power_w + span_w * 1.0393 * (busy_s / 1e-9) ** 0.2
    assert energy_bound_j(job(), columns, np.array([1e-9])) == pytest.approx(24 * 1e-9 * watts)
    assert energy_bound_j(job(), columns, np.array([1e-12])) == pytest.approx(24 * 1e-12 * device.power_limit_w)


@pytest.mark.parametrize(
    ("stage", "dense", "ends"), [(0, 3 * 10 + 100, "embedding"), (1, 2 * 10, "none"), (2, 4 * 10 + 1000, "head")]
)
@pytest.mark.parametrize(("overlaps", "backward_s"), [(False, 6.0), (True, 6.0), (True, 50.0)])
def test_a_ring_sums_what_its_stage_holds(monkeypatch, stage, dense, ends, overlaps, backward_s):
    """Layers of 10, an embedding of 100, a head of 1000. A sum of 8 s hides behind backward passes of 6 s, which it
    slows by a quarter; the last bucket, of 5 of the gradient's 2 bytes an element, is never hidden."""
    held = []

    def sync_of(job, x, stage):
        held.append(stage)
        return SimpleNamespace(reduce_s=np.array([8.0]), gather_s=np.array([3.0]))

    monkeypatch.setattr(islands, "sync_of", sync_of)
    monkeypatch.setattr(islands, "update_s", lambda job, x, held: np.array([2.0]))
    monkeypatch.setattr(islands, "gradient_bytes", lambda job: 2.0)
    framework = SimpleNamespace(bucket_bytes=10.0, overlaps_gradients=overlaps, contention_ratio=1.25)
    job = SimpleNamespace(framework=framework, gradient_overlap="")
    one = np.array([10.0])
    found = SimpleNamespace(
        layer=SimpleNamespace(dense_parameters=one),
        embedding=SimpleNamespace(parameters=np.array([100.0])),
        head=SimpleNamespace(parameters=np.array([1000.0])),
    )
    reduce_s, finish_s = islands._ring(job, TrainingLayout(), found, [3, 2, 4], stage, backward_s)
    assert held[0].dense_parameters == held[0].trained_parameters == dense, ends
    assert (held[0].layer_dense_parameters, held[0].expert_parameters) == (10, 0)
    assert finish_s == 5
    hidden = min(8, backward_s)
    last = min(10 / (2 * dense), 1)
    assert reduce_s == pytest.approx(max(8 - hidden + 0.25 * hidden, last * 8) if overlaps else 8)


@pytest.mark.parametrize(("recompute", "again"), [("none", 0), ("selective", 5), ("full", 12)])
def test_operations_of_stages(recompute, again):
    """Products of 7 and attention of 5 in each of 6 layers three times, and again; a head of 11; 4 micro-batches."""
    layer = SimpleNamespace(forward_flops=np.array([7.0]), attention_flops=np.array([5.0]), padded_flops=np.zeros(1))
    found = SimpleNamespace(layer=layer, num_layers=6, head=SimpleNamespace(forward_flops=np.array([11.0])))
    job = SimpleNamespace(num_micro_batches=lambda layout: 4)
    flops = islands._flops(job, TrainingLayout(tp=2, dp=3, recompute=recompute), found)
    assert flops == (6 * (3 * 12 + again) + 33) * 4 * 2 * 3

"""The search of training layouts: pruned or not, the same answer; and every constraint is named."""

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.models.shape import model_of_shape
from orrery.planner.training.nearby import changes, cheapest_fit, nearest_sensible
from orrery.planner.training.search import search
from orrery.planner.training.space import FixedSettings, divisors, families, layouts
from orrery.training.allowed import RULES, broken, refusal
from orrery.training.columns import columns_of
from orrery.training.memory import USABLE_FRAC
from orrery.training.schedules.registry import SCHEDULES
from orrery.training.step import step_of
from orrery.training.worth import energy_bound_j


def job_of(model="gpt3-13b", devices=16, batch=32, device="a100-sxm-80gb", seq=2048):
    found = get_device(device)
    return TrainingJob(
        model=get_model(model) if isinstance(model, str) else model,
        cluster=Cluster(device=found, num_devices=devices, devices_per_node=8),
        framework=get_framework("megatron-lm", found, "bf16"),
        recipe=get_recipe("bf16"),
        seq_len=seq,
        global_batch=batch,
    )


EXPERTS = model_of_shape(
    name="moe",
    num_layers=8,
    hidden_size=2048,
    num_heads=16,
    ffn_size=8192,
    vocab_size=32000,
    gated_ffn=True,
    num_experts=8,
    experts_per_token=2,
    moe_ffn_size=8192,
)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(job_of(), id="13b", marks=pytest.mark.slow),
        pytest.param(job_of("gpt3-1.3b", 8, 16), id="1.3b"),
        pytest.param(job_of(EXPERTS, 16, 32), id="experts", marks=pytest.mark.slow),
    ],
)
def test_pruning_changes_nothing(job):
    pruned, brute = search(job, FixedSettings()), search(job, FixedSettings(), prunes=False)
    assert [(p.time_s, p.memory_bytes) for p in pruned.best] == [(p.time_s, p.memory_bytes) for p in brute.best]
    assert [(p.time_s, p.memory_bytes, p.energy_j) for p in pruned.front] == [
        (p.time_s, p.memory_bytes, p.energy_j) for p in brute.front
    ]
    assert (
        pruned.num_layouts
        == brute.num_layouts
        == brute.evaluated + sum(k.layouts for k in brute.rejected if k.constraint != "memory")
    )
    assert (
        pruned.evaluated + pruned.ruled_out + sum(k.layouts for k in pruned.rejected if k.constraint != "memory")
        == pruned.num_layouts
    )
    assert pruned.ruled_out > 0 or job.cluster.num_devices < 16


def test_the_best_is_the_best_of_all_tried_one_by_one():
    job = job_of("gpt3-1.3b", 8, 8)
    requested = FixedSettings(schedule="1f1b")
    best, fastest = search(job, requested, count=1).best[0], np.inf
    have = USABLE_FRAC * job.cluster.device.memory_capacity_bytes
    for family in families(job, requested):
        x = layouts(job, requested, family, ("1f1b",))
        bad = np.zeros(len(x), dtype=bool)
        for mask in broken(job, x).values():
            bad |= mask
        for i in np.flatnonzero(~bad)[::23]:  # some of them, each alone
            steps = step_of(job, columns_of([x.layout(int(i))]))
            if steps.memory_bytes[0] <= have:
                fastest = min(fastest, float(steps.time_s[0]))
    assert best.time_s <= fastest * (1 + 1e-12)
    again = step_of(job, columns_of([best.layout]))
    assert again.time_s[0] == pytest.approx(best.time_s, rel=1e-12)
    assert again.memory_bytes[0] == pytest.approx(best.memory_bytes, rel=1e-12)


def test_nothing_on_the_front_is_reached_by_another_and_it_holds_the_best():
    found = search(job_of(), FixedSettings())
    points = [(p.time_s, p.memory_bytes, p.energy_j) for p in found.front]
    assert [p[0] for p in points] == sorted(p[0] for p in points)
    for i, a in enumerate(points):
        assert not any(all(x <= y for x, y in zip(b, a, strict=True)) for j, b in enumerate(points) if i != j)
    assert found.best[0].time_s == points[0][0]


def test_the_energy_bound_is_below_the_energy():
    job = job_of()
    for point in search(job, FixedSettings()).front:
        x = columns_of([point.layout])
        assert energy_bound_j(job, x, np.array([point.time_s]))[0] <= point.energy_j


def test_what_is_fixed_stays_fixed():
    found = search(job_of(), FixedSettings(tp=4, recompute="full", sharding="zero1"))
    assert all(p.layout.tp == 4 and p.layout.recompute == "full" for p in found.best)
    assert {p.layout.sharding for p in found.best} == {"zero1"}


def test_families_use_all_devices_and_the_whole_batch():
    job = job_of(devices=48, batch=96)
    for f in families(job, FixedSettings()):
        assert f.tp * f.cp * f.pp * f.dp == 48
        assert 96 % f.dp == 0
    assert divisors(12) == [1, 2, 3, 4, 6, 12]


def test_every_schedule_is_in_the_space():
    job = job_of("gpt3-13b", 16, 64)
    family = next(f for f in families(job, FixedSettings(tp=4, pp=4, cp=1)))
    names = tuple(SCHEDULES.techniques)
    x = layouts(job, FixedSettings(), family, names)
    assert {names[i] for i in np.unique(x.schedule)} == set(names)


BAD = {
    "devices": (TrainingLayout(tp=2, dp=4), "dp = 8"),
    "heads": (TrainingLayout(tp=16, dp=1), "tp"),
    "experts": (TrainingLayout(dp=16, ep=2), "leave ep"),
    "stages": (TrainingLayout(pp=16, vp=4, schedule="interleaved"), "stages"),
    "batch": (TrainingLayout(dp=16, micro_batch=3), "global_batch = 48"),
    "schedule": (TrainingLayout(tp=2, pp=2, dp=4, vp=2), "vp"),
    "shards": (TrainingLayout(dp=16, sharding="zero3", sharding_group=3), "2 or 4"),
    "sharded gradients": (TrainingLayout(pp=2, dp=8, sharding="zero2"), "zero1"),
}


@pytest.mark.parametrize("rule", BAD)
def test_what_makes_no_sense_is_named_with_what_works(rule):
    layout, hint = BAD[rule]
    job, x = job_of(), columns_of([layout])
    message = refusal(job, x)
    assert hint in message
    masks = broken(job, x)
    assert [name for name, mask in masks.items() if mask[0]] == [rule]
    near = nearest_sensible(job, layout)
    assert near is not None
    assert not refusal(job, columns_of([near]))


def test_rules_have_different_names():
    assert len({r.name for r in RULES}) == len(RULES)


def test_the_change_that_fits_is_small_and_fits():
    job = job_of("gpt3-13b", 8, 64)
    layout = TrainingLayout(dp=8, micro_batch=8)
    message = cheapest_fit(job, layout)
    assert message
    assert message.count("=") <= 2
    assert changes(layout, layout) == []


def test_a_model_too_large_for_the_devices_says_what_comes_closest():
    found = search(job_of("gpt3-175b", 8, 8), FixedSettings())
    assert not found.best
    nearest = min((k for k in found.rejected if k.nearest), key=lambda k: k.need_bytes)
    assert nearest.need_bytes > nearest.have_bytes


def test_copies_stand_between_nodes_and_shards_inside_one():
    """32 data ranks of 2 devices each on nodes of 8: four ranks share a node, so that is the one HSDP group tried."""
    job = job_of(devices=64, batch=64)
    (family,) = families(job, FixedSettings(tp=2, cp=1, pp=1))
    assert family.dp == 32
    found = layouts(job, FixedSettings(micro_batch=1, recompute="none"), family, tuple(SCHEDULES.techniques))
    tried = {
        (layout.sharding, layout.sharding_group, layout.secondary_group)
        for layout in (found.layout(i) for i in range(len(found)))
    }
    shared = {(kind, group, 0) for kind in ("zero1", "zero2", "zero3") for group in (0, 4)}
    assert tried == {("none", 0, 0), ("zero3", 0, 4), *shared}


def test_a_node_that_holds_every_data_rank_has_no_group_of_its_own():
    job = job_of(devices=16, batch=64)
    for tp, groups in ((8, {0}), (2, {0, 4}), (1, {0, 8})):
        (family,) = families(job, FixedSettings(tp=tp, cp=1, pp=1))
        found = layouts(
            job, FixedSettings(micro_batch=1, recompute="none", sharding="zero3"), family, tuple(SCHEDULES.techniques)
        )
        assert {found.layout(i).sharding_group for i in range(len(found))} == groups, tp

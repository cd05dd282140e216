"""Layouts read back from their names, what is off where nobody says, the largest model that fits, and many experts."""

from dataclasses import MISSING, fields
from math import inf

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.execution.batch import Batch
from orrery.execution.composition import Node, missed_frac, nodes_to_hold, popularity
from orrery.execution.engine import Engine
from orrery.execution.host_experts import HostExperts, room_of
from orrery.execution.kept_cache import Compression
from orrery.execution.layout import Deployment, DraftHead, Layout
from orrery.execution.memory import USABLE_FRAC, Infeasible
from orrery.execution.offload.largest import PRECISION_RATIO, Largest, largest_model
from orrery.execution.offload.step import OffloadedStep
from orrery.execution.offload.tiers import CONTEXT_BYTES, MemoryUse, Tiers, shortage, tiers_of
from orrery.execution.offload.work import Work
from orrery.execution.speculation import Speculation
from orrery.execution.techniques.nano_batches import SHARES, NanoBatchKnobs
from orrery.execution.train.framework import Framework
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.layout_name import read_name
from orrery.execution.train.recipe import Recipe

SCHEDULES = ("1f1b", "interleaved", "zb")

# --- names of layouts


@pytest.mark.parametrize(
    "layout",
    [
        TrainingLayout(is_sequence_parallel=False),
        TrainingLayout(tp=8, pp=16, vp=8, dp=128, sharding="zero3", schedule="interleaved"),
        TrainingLayout(tp=2, is_sequence_parallel=False, cp=4, context_kind="all-to-all", ep=2, etp=2, micro_batch=4),
        TrainingLayout(tp=2, pp=2, first_stage_layers=3, last_stage_layers=5, recompute="full", recompute_layers=7),
        TrainingLayout(tp=2, sharding="zero2", sharding_group=8, secondary_group=4, recompute="selective"),
        TrainingLayout(tp=2, recompute="selective", recompute_modules=("core_attn", "mlp")),
    ],
)
def test_a_name_is_read_back_as_the_layout_that_it_says(layout):
    assert TrainingLayout(**read_name(str(layout), SCHEDULES)) == layout


def test_what_a_name_leaves_out_is_off():
    plain = {"is_sequence_parallel": False, "sharding": "none", "recompute": "none", "micro_batch": 1, "etp": 1}
    assert read_name("tp2", SCHEDULES) == plain | {"tp": 2}
    assert read_name("recompute-mlp+core_attn", SCHEDULES)["recompute_modules"] == ("core_attn", "mlp")
    assert read_name("tp2, dp4", SCHEDULES) == plain | {"tp": 2, "dp": 4}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("tp2 tp4", "says tp twice"),
        ("zero1 zero2", "says sharding twice"),
        ("tp0", "no part of a layout"),
        ("tp12345678", "no part of a layout"),
        ("zero4", "write 'zero"),
        ("recompute-nothing", "no part of a layout"),
        ("recompute-full-0", "no part of a layout"),
        ("????", "write one such as"),
    ],
)
def test_names_that_say_no_layout(text, says):
    with pytest.raises(ScenarioError, match=says):
        read_name(text, SCHEDULES)


# --- what nobody asked for

AT = (10, 20, 40, 80, 90)


@pytest.mark.parametrize(
    ("kind", "on"),
    [
        (Layout, {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1}),
        (
            TrainingLayout,
            {"tp": 1, "cp": 1, "pp": 1, "dp": 1, "vp": 1, "ep": 1, "etp": 1, "micro_batch": 1}
            | {"is_sequence_parallel": True},
        ),
        (Deployment, {}),
        (DraftHead, {}),
        (Batch, {}),
        (Compression, {"kept_tokens_frac": 1.0, "kept_bytes_frac": 1.0}),
        (HostExperts, {"cached_frac": 0.5}),
        (
            Engine,
            {
                "max_num_graph_seqs": 512,
                "num_states_each": 1,
                "memory_ratio": 1.0,
                "compute_ratio": 1.0,
                "scales_measured": True,
                "has_eras": True,
                "sampling_logit_bytes": 4.0,
            },
        ),
        (
            Framework,
            {"context_bytes": 5e8}
            | dict.fromkeys(("accumulates", "keeps_wide_layers", "has_native_attention", "gathers_ends_apart"), True),
        ),
        (TrainingJob, {"adapter_rank": 16, "placement_interval_steps": 100}),
        (Recipe, {"saved_input_bytes": 2.0, "gathered_weight_bytes": 2.0, "master_bytes": -1.0}),
        (
            Work,
            {"num_micro_batches": 1, "parameter_bytes": 2.0, "gradient_bytes": 2.0, "state_bytes": 12.0},
        ),
        (Tiers, {"is_link_duplex": True, "num_ranks": 1}),
        (MemoryUse, {}),
        (
            NanoBatchKnobs,
            {"num_batches": 2}
            | {f"memory_at_{at}_frac": frac for at, frac in zip(AT, (0.2, 0.3, 0.8, 0.85, 0.95), strict=True)}
            | {f"network_at_{at}_frac": frac for at, frac in zip(AT, (0.3, 0.5, 0.65, 0.9, 1.0), strict=True)},
        ),
    ],
)
def test_numbers_and_switches_that_are_not_off_where_nobody_says(kind, on):
    """All others are 0, False, or no limit."""
    numbers = {f.name: f.default for f in fields(kind) if type(f.default) in (int, float, bool)}
    assert {name: value for name, value in numbers.items() if value and value != inf} == on
    assert all(type(value) is type(numbers[name]) for name, value in on.items())


def test_shares_of_the_interference_table():
    assert SHARES == (0.1, 0.2, 0.4, 0.8, 0.9)
    assert [int(f.name.split("_")[2]) / 100 for f in fields(NanoBatchKnobs)[1:6]] == list(SHARES)


def test_a_speculation_guesses_one_token_with_no_cost_where_nobody_says():
    plain = Speculation()
    assert (plain.draft_base_s, plain.draft_s_per_sequences) == (0, 0)


def test_experts_that_a_device_keeps():
    assert [room_of(HostExperts(cached_frac=f), 8) for f in (0.0, 0.3, 0.5, 1.0)] == [0, 2, 4, 8]
    with pytest.raises(ScenarioError, match="the host's own rates"):
        HostExperts(computes=True, host_flops_per_s=1.0)
    with pytest.raises(ScenarioError, match="the host's own rates"):
        HostExperts(computes=True, host_memory_bytes_per_s=1.0)
    assert HostExperts(computes=True, host_flops_per_s=1.0, host_memory_bytes_per_s=0.5).computes
    for wrong in (-0.1, 1.0):
        with pytest.raises(ScenarioError, match="expert_repeat"):
            HostExperts(repeat_frac=wrong)


# --- the largest model


def work(size=1.0, **more):
    values = {f.name: 1.0 for f in fields(Work) if f.default is MISSING}
    return Work(**(values | {"num_layers": 2, "num_layer_parameters": size} | more))


def step_of(held_bytes):
    values = {f.name: 0.0 for f in fields(OffloadedStep) if f.default is MISSING}
    return OffloadedStep(**(values | {"held": MemoryUse(gpu_bytes=held_bytes)}))


def found(limit, **more):
    """A byte a parameter."""
    tiers = Tiers(gpu_bytes=limit, gpu_memory_bytes_per_s=1.0)
    return largest_model(lambda w: step_of(w.num_layer_parameters), tiers, lambda size: work(size=size), **more)


def test_the_largest_model_fills_the_device():
    largest = found(3.3e9)
    assert isinstance(largest, Largest)
    assert largest.num_parameters == largest.step.held.gpu_bytes
    assert largest.num_parameters <= 3.3e9 < PRECISION_RATIO * largest.num_parameters
    assert largest.infeasible is not None
    assert 3.3e9 < largest.infeasible.need <= PRECISION_RATIO * largest.num_parameters
    assert PRECISION_RATIO == 1.005
    assert "billion parameters" in largest.infeasible.what


def test_sizes_that_all_fit_and_that_do_not():
    assert found(1e15) == Largest(num_parameters=1e14, step=step_of(1e14), infeasible=None)
    assert found(1e15, most_parameters=3e8).num_parameters == 3e8
    assert isinstance(found(1e7), Infeasible)
    assert found(1e8, most_parameters=2e8).num_parameters == pytest.approx(1e8, rel=0.005)
    for least, most in ((0.0, 1.0), (2.0, 1.0), (1.0, 1.0)):
        with pytest.raises(ScenarioError, match="write the least first"):
            found(1e9, least_parameters=least, most_parameters=most)


def test_bytes_of_a_device_that_trains():
    """Gradient in, states in and out, the copy out; where parameters are states themselves they go both ways."""
    mixed = work(size=10.0, num_outer_parameters=7.0, boundary_bytes=3.0)
    assert (mixed.num_parameters, mixed.layer_bytes, mixed.checkpoint_bytes) == (27, 20, 6)
    assert mixed.update_bytes == 2 + 12 + 12 + 2
    assert work(parameter_bytes=4.0, gradient_bytes=4.0, state_bytes=8.0).update_bytes == 4 + 12 + 12
    for name in ("num_layers", "num_micro_batches"):
        assert getattr(work(**{name: 1}), name) == 1
        with pytest.raises(ScenarioError, match="write 1 or more"):
            work(**{name: 0})


def test_tiers_of_a_device_that_shares_nothing():
    """All that the host has; 82 % of its link, 76 % of its memory's peak; on the device what the driver leaves."""
    device = get_device("h100-sxm")
    tiers = tiers_of(device, host_bytes=100.0, host_memory_bytes_per_s=50.0)
    assert tiers.gpu_bytes == USABLE_FRAC * device.memory_capacity_bytes - 0.6e9
    assert CONTEXT_BYTES == 0.6e9
    assert tiers.host_link_each_way_bytes_per_s == pytest.approx(0.82 * device.host.each_way_bytes_per_s)
    assert (tiers.host_bytes, tiers.host_memory_bytes_per_s) == (100, 38)
    assert (tiers.nvme_bytes, tiers.nvme_read_bytes_per_s, tiers.num_ranks) == (0, inf, 1)


@pytest.mark.parametrize(
    ("held", "where"),
    [((10, 20, 30), None), ((11, 20, 30), "device"), ((10, 21, 31), "host memory"), ((10, 20, 31), "NVMe drives")],
)
def test_the_first_tier_that_does_not_hold_its_part(held, where):
    tiers = Tiers(gpu_bytes=10, gpu_memory_bytes_per_s=1.0, host_bytes=20, nvme_bytes=30)
    use = MemoryUse(**dict(zip(("gpu_bytes", "host_bytes", "nvme_bytes"), held, strict=True)))
    missing = shortage(use, tiers, "step")
    assert (missing.what if missing else None) == (f"step: {where}" if where else None)
    if missing:
        assert missing.need - missing.have == 1


# --- many experts behind one router


def test_experts_in_two_memories():
    node = Node(fast_bytes=35.0, switch_bytes_per_s=5.0, switch_latency_s=0.5)
    assert node.switch_s(10.0) == 2.5
    assert node.fast_experts(10.0) == 3
    assert [nodes_to_hold(n, 10.0, node) for n in (1, 3, 4, 7)] == [1, 1, 2, 3]
    assert nodes_to_hold(2, 35.0, node) == 2
    with pytest.raises(Exception, match="does not fit"):
        nodes_to_hold(1, 36.0, node)
    assert Node(fast_bytes=1.0, switch_bytes_per_s=2.0).switch_s(1.0) == 0.5


@pytest.mark.parametrize("name", ["fast_bytes", "switch_bytes_per_s"])
def test_a_node_has_memories_and_a_rate(name):
    sizes = {"fast_bytes": 0.5, "switch_bytes_per_s": 0.5}
    assert getattr(Node(**sizes), name) == 0.5
    with pytest.raises(Exception, match="above 0"):
        Node(**(sizes | {name: 0.0}))


def test_requests_that_find_their_expert_elsewhere():
    """Alike, 1 of 4 experts in the fast memory is met by a quarter; by a power law 1, 1/2, 1/3 and 1/4 over 25/12."""
    np.testing.assert_allclose(popularity(4, 1.0), np.array([12, 6, 4, 3]) / 25)
    assert popularity(4, 0.0).tolist() == [0.25] * 4
    assert missed_frac(4, 4) == missed_frac(4, 9) == 0
    assert missed_frac(4, 1) == pytest.approx(0.75, abs=0.02)
    assert missed_frac(4, 1, 1.0) == pytest.approx(1 - (144 + 36 + 16 + 9) / 625, abs=0.02)
    assert missed_frac(40, 30) == pytest.approx(0.25, abs=0.02)
    assert missed_frac(4, 3, num_requests=2) == 0  # the fast memory is not full yet


def test_the_least_recently_used_expert_makes_room(monkeypatch):
    """0 and 1 fill two places. Then 0 is there, 2 takes the place of 1, 0 is there, 1 is not: two of four."""
    from orrery.execution import composition

    class Drawn:
        @staticmethod
        def choice(num_experts, size, p):
            return np.array([0, 1, 0, 2, 0, 1])

    monkeypatch.setattr(composition, "stream", lambda seed, name: Drawn)
    assert missed_frac(3, 2) == pytest.approx(2 / 4)

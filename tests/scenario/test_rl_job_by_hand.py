"""From settings to a step of RL: pools, lengths, splits of the devices, and what is assumed or refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.scenario import rl_job as page
from orrery.scenario import rl_plan
from orrery.scenario import train_offload_work as work
from orrery.scenario.schema import read_scenario


def asked(**settings):
    return read_scenario(settings)


# --- pools


@pytest.mark.parametrize(
    ("settings", "pools", "names"),
    [
        ({}, (True, 8), ["colocated"]),
        ({"colocated": True}, (True, 8), []),
        ({"colocated": True, "generation_devices": 8}, (True, 8), []),
        ({"max_staleness": 1}, (False, 4), ["colocated", "generation_devices"]),
        ({"generation_devices": 3}, (False, 3), ["colocated"]),
        ({"generation_devices": 7}, (False, 7), ["colocated"]),
        ({"colocated": False}, (False, 4), ["generation_devices"]),
    ],
)
def test_who_generates(settings, pools, names):
    notes = []
    assert page.pools(asked(devices=8, **settings), notes) == pools
    assert [note.partition(":")[0] for note in notes] == names


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"colocated": True, "max_staleness": 1}, "pools that take turns are on policy"),
        ({"colocated": True, "generation_devices": 4}, "colocated engines take all devices"),
        ({"generation_devices": 8}, "write 1 to 7"),
    ],
)
def test_pools_that_make_no_sense(settings, says):
    with pytest.raises(ScenarioError, match=says):
        page.pools(asked(devices=8, **settings), [])


# --- lengths


def test_lengths_that_nobody_says():
    """Four times the mean of responses, spread as wide as their mean, behind prompts of one length."""
    notes = []
    prompt, response, longest = page.lengths_of_scenario(asked(output_tokens=100), notes)
    assert (prompt.mean_tokens, prompt.law) == (page.INPUT_TOKENS, "constant")
    assert (response.mean_tokens, response.law, response.most_tokens) == (100, "lognormal", 400)
    assert response.std_tokens == page.SPREAD_FRAC * 100
    assert longest == page.INPUT_TOKENS + 400
    assert [note.partition(":")[0] for note in notes] == ["input_tokens", "max_output_tokens", "output_tokens_std"]


def test_lengths_as_they_are_said():
    notes = []
    given = {"input_tokens": 50, "input_tokens_std": 5, "output_tokens": 100, "output_tokens_std": 7}
    prompt, response, longest = page.lengths_of_scenario(asked(**given, max_output_tokens=100), notes)
    assert (prompt.mean_tokens, prompt.std_tokens) == (50, 5)
    assert (response.std_tokens, response.most_tokens, longest, notes) == (7, 100, 150, [])
    _, left, whole = page.lengths_of_scenario(asked(**given, seq_len=300), notes)
    assert (left.most_tokens, whole) == (250, 300)
    assert notes == ["max_output_tokens: 250 (what seq_len leaves)"]
    _, same, _ = page.lengths_of_scenario(asked(input_tokens=50, output_tokens=9, lengths="constant"), [])
    assert (same.std_tokens, same.law) == (0.0, "constant")
    with pytest.raises(ScenarioError, match="more than the longest response, 99"):
        page.lengths_of_scenario(asked(**given, max_output_tokens=99), [])


# --- techniques of the tail


@pytest.mark.parametrize(
    ("settings", "tail"),
    [
        ({}, "wait"),
        ({"partial_rollout": True}, "partial"),
        ({"tail_batching": True, "oversampling": 1.5}, "batching"),
        ({"max_staleness": 2}, "wait"),
    ],
)
def test_what_is_done_about_the_longest_responses(settings, tail):
    assert page._tail(asked(**settings)) == tail


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"partial_rollout": True, "tail_batching": True}, "exclude each other"),
        ({"partial_rollout": True, "max_staleness": 1}, "hide the tail"),
        ({"oversampling": 1.5}, "nothing is begun beyond need"),
    ],
)
def test_tails_that_make_no_sense(settings, says):
    with pytest.raises(ScenarioError, match=says):
        page._tail(asked(**settings))


def test_groups_that_are_kept():
    notes = []
    assert page._retained(asked(), "grpo", notes) == 1.0
    assert page._retained(asked(kept_groups=0.4), "dapo", notes) == 0.4
    assert notes == []
    assert page._retained(asked(), "dapo", notes) == 1.0
    assert notes[0].startswith("kept_groups: 1")


def test_rewards():
    notes = []
    plain = page._reward(asked(), notes)
    assert (plain.sample_s, plain.workers, plain.model, len(notes)) == (0.0, 1, None, 1)
    told = page._reward(asked(reward_s=2.0, reward_workers=3), notes)
    assert (told.sample_s, told.workers, len(notes)) == (2.0, 3, 1)
    assert page._reward(asked(reward_model="llama-3.2-1b"), notes).model.name.endswith("Llama-3.2-1B")


def test_every_replica_gets_as_many_sequences():
    def check(batch, dp):
        page._check_fed(SimpleNamespace(global_batch=batch), SimpleNamespace(dp=dp))

    check(12, 4)
    with pytest.raises(ScenarioError, match="write global_batch = 12"):
        check(14, 4)
    with pytest.raises(ScenarioError, match="write global_batch = 4"):
        check(3, 4)


# --- splits of a plan


@pytest.mark.parametrize(
    ("settings", "splits"),
    [
        ({"devices": 16, "colocated": True}, [None]),
        ({"devices": 16, "generation_devices": 5}, [5]),
        ({"devices": 16, "generation_devices": 5, "colocated": False}, [5]),
        # eighths of 16 devices in nodes of eight are whole nodes
        ({"devices": 16, "devices_per_node": 8}, [None, 8]),
        ({"devices": 16, "devices_per_node": 8, "max_staleness": 1}, [8]),
        ({"devices": 16, "devices_per_node": 8, "colocated": False}, [8]),
        # one node is cut by devices, as are devices that fill no nodes
        ({"devices": 8, "devices_per_node": 8}, [None, 1, 2, 3, 4, 5, 6, 7]),
        ({"devices": 2, "devices_per_node": 8, "max_staleness": 1}, [1]),
        ({"devices": 12, "devices_per_node": 8, "max_staleness": 1}, [1, 3, 4, 6, 7, 9, 10]),
        ({"devices": 64, "devices_per_node": 8, "max_staleness": 1}, [8, 16, 24, 32, 40, 48, 56]),
    ],
)
def test_splits_are_eighths_of_the_devices(settings, splits):
    assert tuple(rl_plan.EIGHTHS) == (1, 2, 3, 4, 5, 6, 7)
    assert list(rl_plan._splits(asked(device="h100-sxm", **settings))) == splits


def test_a_plan_as_settings():
    def plan(colocated):
        generation = SimpleNamespace(layout=SimpleNamespace(tp=2))
        return SimpleNamespace(
            job=SimpleNamespace(layout="tp4", generation=generation, is_colocated=colocated, generation_devices=6)
        )

    assert rl_plan.flags_of(plan(True)) == {"layout": "tp4", "generation_tp": 2, "colocated": True}
    assert rl_plan.flags_of(plan(False)) == {"layout": "tp4", "generation_tp": 2, "generation_devices": 6}
    cut = rl_plan._cut("tp4")
    assert cut["layout"] == "tp4"
    assert {value for name, value in cut.items() if name != "layout"} == {None}


def test_degrees_of_engines_whose_weights_fit(monkeypatch):
    """Of 1, 2, 4 and 8 those that divide twelve devices and hold the weights, up to a few."""
    job = SimpleNamespace(cluster=SimpleNamespace(devices_per_node=8), model=None)
    monkeypatch.setattr(rl_plan, "get_rl_framework", lambda name: None)
    monkeypatch.setattr(rl_plan, "lengths_of_scenario", lambda scenario, notes: (None, None, 9))
    monkeypatch.setattr(rl_plan, "trainer_question", lambda *given: SimpleNamespace(job=job))
    monkeypatch.setattr(rl_plan, "tensor_degrees", lambda model, node: [1, 2, 3, 4, 6, 8])
    monkeypatch.setattr(rl_plan, "engine_for", lambda scenario, *given: scenario.generation_tp)
    lacks = rl_plan.Infeasible(what="", need=2.0, have=1.0, unit="bytes", smallest_change="")
    monkeypatch.setattr(rl_plan, "memory_of", lambda degree: lacks if degree < 2 else "fits")
    found = rl_plan._engines(asked(devices=12), 12)
    assert found == [2, 3, 4, 6][: rl_plan.ENGINES]
    assert rl_plan._engines(asked(devices=8), None) == [2, 4, 8][: rl_plan.ENGINES]
    assert rl_plan._engines(asked(devices=12, generation_tp=5), 12) == [5]


# --- what an offloaded step is made of


def test_widths_that_products_leave():
    """Outputs cut by columns, or the input of attention's last one; of experts both matrices, three where gated."""

    def linear(name, shard):
        return SimpleNamespace(name=name, shard=shard, in_features=8, out_features=24)

    assert work._own_width(linear("qkv", "column"), 2) == 12.0
    assert work._own_width(linear("down", "row"), 2) == 0.0
    assert work._own_width(linear("out", "row"), 2) == 4.0

    def block(is_gated):
        return SimpleNamespace(
            experts=SimpleNamespace(experts_per_token=3, hidden_size=10, ffn_size=7, is_gated=is_gated)
        )

    assert work._expert_width(block(False)) == 3 * (10 + 7)
    assert work._expert_width(block(True)) == 3 * (10 + 2 * 7)
    assert work._expert_width(SimpleNamespace(experts=None)) == 0.0
    pace = SimpleNamespace(a=np.array([1.5]), b=np.array([2.0]))
    assert work._sum(pace, "a", "b", "b") == 5.5


def test_rollouts_take_the_cache_of_their_engine():
    """SGLang keeps the cache behind an indexer in FP8 on Blackwell and in BF16 below."""
    model = get_model("deepseek-v3.2")
    for device, cache in (("b200", "fp8"), ("h100-sxm", "bf16")):
        found = get_device(device)
        assert page.formats_for("bf16", found, get_engine("sglang", "0.5.12", found), model).kv == cache

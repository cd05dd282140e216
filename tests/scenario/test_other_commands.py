"""Keywords of other commands are refused by every door, with the commands that take them; files may hold them."""

import tomllib
from inspect import signature

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.scenario.disaggregate import FOUND
from orrery.scenario.fields import BY_NAME, SETTINGS
from orrery.scenario.mix import plan_mix
from orrery.scenario.plan_simulated import plan_simulated
from orrery.scenario.schema import read_scenario
from orrery.scenario.setting import DEPLOYMENTS

MACHINE = {"model": "llama-3.1-8b", "device": "h100-sxm"}
SERVED = MACHINE | {"input_tokens": 64, "output_tokens": 8}
LEARNED = MACHINE | {"devices": 8, "global_batch": 16, "seq_len": 2048}

DOORS = {
    "estimate": (orrery.estimate, "estimate", SERVED | {"batch": 1}),
    "long contexts": (orrery.estimate, "estimate", SERVED | {"batch": 1, "context_lengths": "100,200"}),
    "plan": (orrery.plan, "plan", SERVED | {"rate": 1.0, "max_devices": 1}),
    "plan_disaggregated": (orrery.plan_disaggregated, "plan", SERVED | {"max_devices": 2, "slo": ["tpot:50"]}),
    "plan_simulated": (plan_simulated, "plan", SERVED | {"rate": 1.0, "max_devices": 1}),
    "plan_mix": (plan_mix, "plan", SERVED | {"rate": 1.0}),
    "simulate": (orrery.simulate, "simulate", SERVED | {"rate": 1.0, "num_requests": 3}),
    "find_capacity": (orrery.find_capacity, "simulate", SERVED),
    "sweep": (lambda **given: orrery.sweep(over=["tp=1,2"], **given), "simulate", SERVED | {"rate": 1.0}),
    "train": (orrery.train, "train", LEARNED),
    "train_plan": (orrery.train_plan, "train", LEARNED),
    "train_graph": (orrery.train_graph, "train", LEARNED),
    "train_rl": (orrery.train_rl, "train", LEARNED),
    "train_rl_plan": (orrery.train_rl_plan, "train", LEARNED),
    "train_rl_placement": (orrery.train_rl_placement, "train", LEARNED),
    "cold_start": (orrery.cold_start, "cold-start", MACHINE),
    "what_if": (lambda **given: orrery.what_if("fp8-weights", **given), "what-if", SERVED | {"batch": 1}),
    "cache_size": (orrery.cache_size, "cache-size", MACHINE | {"sessions": "none.csv"}),
}

OWN_WORDS = {"plan_disaggregated": FOUND}
"""Settings of other commands of which a door says more than that it does not take them."""

READS = {"what-if": DEPLOYMENTS}
"""A command that reads what others do."""

KINDS_OF_TRAFFIC = ("batch", "concurrency", "users")
"""Of which any reader says that a scenario has one."""


def example(setting):
    """A value as the help page has it."""
    return tomllib.loads(f"value = {setting.example}")["value"]


@pytest.mark.parametrize("name", DOORS)
def test_every_setting_of_another_command_is_refused_by_name(name):
    door, command, base = DOORS[name]
    own = signature(door).parameters  # requests of a mix have lengths of their own
    foreign = [s for s in SETTINGS if not s.commands & ({command} | READS.get(command, set())) and s.name not in own]
    assert len(foreign) > 10
    for setting in foreign:
        with pytest.raises(ScenarioError) as refused:
            door(**base | {setting.name: example(setting)})
        said = str(refused.value)
        assert setting.name in said
        if setting.name not in (*OWN_WORDS.get(name, ()), *KINDS_OF_TRAFFIC):
            assert f"{setting.name}: {command} takes no {setting.name}; " in said
            assert all(f"`orrery {other}`" in said for other in setting.commands)


def test_a_keyword_is_refused_in_a_sentence():
    with pytest.raises(ScenarioError) as refused:
        orrery.estimate(**SERVED, batch=1, lora_adapters=8)
    assert str(refused.value) == (
        "lora_adapters: estimate takes no lora_adapters; `orrery emulate` and `orrery simulate` do. Leave it out."
    )
    with pytest.raises(ScenarioError, match=r"max_devices; `orrery plan` does\."):
        orrery.estimate(**SERVED, batch=1, max_devices=8)


def test_another_name_of_a_setting_is_refused_as_well():
    with pytest.raises(ScenarioError, match="num_requests: estimate takes no num_requests"):
        orrery.estimate(**SERVED, batch=1, num_prompts=8)


def test_a_scenario_may_hold_settings_of_other_commands_and_none_is_nothing():
    """One file describes a deployment; each command reads what it knows of it."""
    assert "estimate" not in BY_NAME["replicas"].commands
    shared = read_scenario(SERVED | {"batch": 1, "replicas": 2})
    plain = orrery.estimate(**SERVED, batch=1, replicas=None)
    assert orrery.estimate(shared).estimate.ttft_s == plain.estimate.ttft_s


def test_lengths_of_answers_are_of_training_by_reinforcement():
    assert "train" in BY_NAME["lengths"].commands

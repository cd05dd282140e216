"""Keywords of other commands are refused by every door, with the commands that take them; files may hold them."""

import tomllib
from inspect import signature

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.scenario.disaggregate import FOUND
from orrery.scenario.fields import BY_NAME, SETTINGS
from orrery.scenario.fields_fleet import FLEET_SETTINGS
from orrery.scenario.mix import plan_mix
from orrery.scenario.plan_simulated import plan_simulated
from orrery.scenario.rl_job import OF_RESPONSES
from orrery.scenario.schema import read_scenario
from orrery.scenario.setting import DEPLOYMENTS, SIMULATE

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
    "simulate_fleet": (orrery.simulate_fleet, "fleet", SERVED | {"rate": 1.0, "num_requests": 3}),
    "compare": (lambda **given: orrery.compare([SERVED | {"batch": 1}, given]), "estimate", SERVED | {"batch": 1}),
    "compare simulated": (
        lambda **given: orrery.compare([SERVED | {"rate": 1.0}, given], is_simulated=True),
        "simulate",
        SERVED | {"rate": 1.0},
    ),
    "compare plans": (
        lambda **given: orrery.compare([SERVED | {"rate": 1.0, "max_devices": 1}, given]),
        "plan",
        SERVED | {"rate": 1.0, "max_devices": 1},
    ),
    "compare jobs": (lambda **given: orrery.compare([LEARNED, given]), "train", LEARNED),
    "cache_size": (orrery.cache_size, "cache-size", MACHINE | {"sessions": "none.csv"}),
}

COMPARES = ("max_devices", "global_batch")
"""Settings that make another kind of design."""

OWN_WORDS = {"plan_disaggregated": FOUND, **{name: COMPARES for name in DOORS if name.startswith("compare")}}
"""Settings of other commands of which a door says more than that it does not take them."""

READS = {"what-if": DEPLOYMENTS, "fleet": SIMULATE}
"""Commands that read what others do."""

OWN_KEYS = {"simulate_fleet": tuple(s.name for s in FLEET_SETTINGS)}
"""Of those, names that mean something of the command's own."""

KINDS_OF_TRAFFIC = ("batch", "concurrency", "users")
"""Of which any reader says that a scenario has one."""


def typed(settings):
    """Settings as flags."""
    return [word for name, value in settings.items() for word in BY_NAME[name].typed(value)]


def example(setting):
    """A value as the help page has it."""
    return tomllib.loads(f"value = {setting.example}")["value"]


@pytest.mark.parametrize("name", DOORS)
def test_every_setting_of_another_command_is_refused_by_name(name):
    door, command, base = DOORS[name]
    own = (*signature(door).parameters, *OWN_KEYS.get(name, ()))  # requests of a mix have lengths of their own
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


@pytest.mark.parametrize("door", [orrery.train, orrery.train_plan])
@pytest.mark.parametrize("name", OF_RESPONSES)
def test_a_job_that_learns_from_data_takes_no_setting_of_responses(door, name):
    setting = BY_NAME[name]
    with pytest.raises(ScenarioError, match=rf"^{name}: is of RL post-training; write rl = true"):
        door(**LEARNED, **{name: example(setting)})
    with pytest.raises(ScenarioError, match=rf"^{name}: is of RL post-training"):
        orrery.compare([LEARNED, LEARNED | {name: example(setting)}])
    assert run(["train", *typed(LEARNED), setting.flag, setting.example.strip('"')]) == 2


def test_a_scenario_that_is_served_and_trained_keeps_lengths_for_the_one():
    job = LEARNED | {"tp": 4}
    shared = read_scenario(job | {"output_tokens": 256, "engine": "vllm", "lengths": "constant"})
    assert orrery.train(shared).step_time_s == orrery.train(**job).step_time_s
    plans = [orrery.train_plan(shared, count=1), orrery.train_plan(**job, count=1)]
    assert len({p.plans[0].step_time_s for p in plans}) == 1


def test_another_kind_of_training_is_asked_by_its_own_door():
    """Each was answered as a plain job that learns from data."""
    with pytest.raises(ScenarioError, match="rl: is answered by train_rl and train_rl_plan"):
        orrery.train(**LEARNED, rl=True)
    with pytest.raises(ScenarioError, match="kept_groups: is of RL post-training"):
        orrery.train_plan(**LEARNED, kept_groups=0.5)
    for door in (orrery.train, orrery.train_plan):
        with pytest.raises(ScenarioError, match="graph: is answered by train_graph"):
            door(**LEARNED, graph="planted:100:4")
        with pytest.raises(ScenarioError, match="graph_layers: is of training on a whole graph"):
            door(**LEARNED, graph_layers=4)


def test_a_rank_of_adapters_that_none_have_is_noted():
    note = "adapter_rank: no effect on this job: no adapters learn (task = lora or qlora)"
    assert note in orrery.train(**LEARNED, adapter_rank=8).notes
    assert note not in orrery.train(**LEARNED, adapter_rank=8, task="lora").notes


def test_a_file_of_a_fleet_may_hold_what_another_command_reads(tmp_path):
    file = tmp_path / "FLEET.toml"
    file.write_text(
        'model = "llama-3.1-8b"\ndevice = "h100-sxm"\nrate = 1.0\ninput_tokens = 64\noutput_tokens = 8\n'
        "num_requests = 3\nmax_devices = 8\n"
    )
    assert orrery.simulate_fleet(file).inputs.written["max_devices"] == 8
    with pytest.raises(ScenarioError, match=r"max_devices: fleet takes no max_devices; `orrery plan` does\."):
        orrery.simulate_fleet(file, max_devices=8)


def test_files_of_a_comparison_may_too_and_what_is_typed_is_read(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(
        'model = "llama-3.1-8b"\ndevice = "h100-sxm"\nbatch = 1\ninput_tokens = 64\noutput_tokens = 8\nreplicas = 2\n'
    )
    assert run(["compare", str(file), "--with", "weights=fp8"]) == 0
    capsys.readouterr()
    for words in (["--with", "lora-adapters=8"], ["--with", "weights=fp8", "--lora-adapters", "8"]):
        assert run(["compare", str(file), *words]) == 2
        assert "lora_adapters: estimate takes no lora_adapters" in capsys.readouterr().err

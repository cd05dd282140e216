"""Every flag on a deployment that has nothing for most of them: it changes a number, is refused, or says that it does
nothing."""

import json
import tomllib

import pytest

import orrery
from orrery.base.errors import OrreryError
from orrery.scenario.fields import SETTINGS

CHAT = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 600, "output_tokens": 32}
BASES = {
    "estimate": CHAT | {"concurrency": 4},
    "simulate": CHAT | {"rate": 4, "num_requests": 12},
    "plan": CHAT | {"rate": 4, "max_devices": 2, "slo": ["tpot:50"]},
    "train": {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "devices": 8,
        "dp": 8,
        "global_batch": 16,
        "micro_batch": 1,
        "seq_len": 2048,
        "precision": "bf16",
        "sharding": "zero1",
    },
}
ALIKE = {
    "seed": "nothing is drawn",
    "usd_per_hour": "the example may be the price of the catalogue",
    "workload": "is written out as other settings",
    "assume": "the family is known",
    "max_model_len": "a limit that nothing reaches",
    "power_budget_w": "half a minute of service; tests of a row of machines have it",
    "loss_tokens": "a limit that nothing reaches",
    **dict.fromkeys(
        (
            *("cp", "etp", "sharding_group", "devices_per_node", "max_num_batched_tokens", "gpu_memory_utilization"),
            *(
                "arrivals",
                "policy",
                "queue",
                "attention_backend",
                "framework",
                "fused_attention",
                "native_attention",
                "task",
            ),
        ),
        "the example is the default",
    ),
}
"""Settings that may change nothing without a word, and why."""

ASIDE = {"notes", "launch_notes", "settings", "seconds", "date", "requests_simulated_per_s", "command"}


def numbers(answer):
    """All of an answer but its notes, and what the clock on the wall says."""

    def without(value):
        if isinstance(value, dict):
            return {k: without(v) for k, v in value.items() if k not in ASIDE}
        return [without(v) for v in value] if isinstance(value, list) else value

    return json.dumps(without(answer.to_json()), sort_keys=True, default=str)


def silent(command, setting, plain):
    """Whether the setting's own example changes nothing and nobody says so."""
    value = tomllib.loads(f"x = {setting.example}")["x"]
    base = BASES[command]
    if base.get(setting.name) == value:
        return False
    try:
        answer = getattr(orrery, command)(**{**base, setting.name: value})
    except (OrreryError, ValueError):
        return False
    if any(setting.name in note for note in answer.notes):
        return False
    return numbers(answer) == plain


@pytest.mark.parametrize("command", BASES)
def test_a_flag_acts_or_is_refused_or_says_that_it_does_nothing(command):
    plain = numbers(getattr(orrery, command)(**BASES[command]))
    mine = [s for s in SETTINGS if command in s.commands and s.name not in ALIKE]
    assert len(mine) > 30
    assert [s.name for s in mine if silent(command, s, plain)] == []


ON_BY_DEFAULT = ("fused_attention", "native_attention")


@pytest.mark.parametrize("command", BASES)
def test_a_switch_that_is_off_is_one_left_out(command):
    plain = numbers(getattr(orrery, command)(**BASES[command]))
    switches = [
        s.name for s in SETTINGS if command in s.commands and s.kind == "switch" and s.name not in ON_BY_DEFAULT
    ]
    assert switches
    changed = []
    for name in switches:
        try:
            answer = getattr(orrery, command)(**BASES[command], **{name: False})
        except OrreryError:
            continue
        changed += [name] if numbers(answer) != plain else []
    assert changed == []


def test_spread_that_counts_is_passed_over_in_silence():
    """A closed loop's outputs, and whatever a run draws, count with their spread; the rest is said not to."""
    spread = {"input_tokens_std": 200, "output_tokens_std": 16}

    def said(command, **settings):
        return {
            n.split(" = ")[0]
            for n in getattr(orrery, command)(**CHAT, **spread, **settings).notes
            if "mean length" in n
        }

    assert said("estimate", concurrency=4) == {"input_tokens_std"}
    assert said("estimate", rate=4) == set(spread)
    assert said("simulate", rate=4, num_requests=4) == set()
    assert said("simulate", rate=4, num_requests=4, lengths="constant") == set(spread)


EXPERTS = {"model": "qwen3-30b-a3b", "device": "h100-sxm", "devices": 16, "global_batch": 64, "seq_len": 2048}
MIXTURE = {"model": "mixtral-8x7b", "device": "h100-sxm", "input_tokens": 600, "output_tokens": 32}
PIPELINED = {"pp": 2, "ep": 8, "sharding": "zero1"}


@pytest.mark.parametrize(
    ("command", "base", "setting", "why"),
    [
        ("train", EXPERTS | {"ep": 1, "sharding": "zero3"}, {"overlap_micro_batches": True}, "ep is 1"),
        ("train", EXPERTS | PIPELINED, {"overlap_micro_batches": True}, "vp is 1: a rank of the pipeline"),
        (
            "train",
            EXPERTS | {"ep": 8, "global_batch": 16},
            {"overlap_micro_batches": True},
            "one micro-batch",
        ),
        ("train", EXPERTS | {"ep": 8}, {"expert_overlap": "shadowing"}, "every expert gets as many tokens"),
        ("train", EXPERTS | PIPELINED, {"expert_overlap": "sparse-materialisation"}, "every expert gets as many"),
        ("train", BASES["train"] | {"tp": 2, "dp": 4}, {"tensor_overlap": "weight-gradients"}, "does so by default"),
        ("plan", CHAT | {"rate": 4, "max_devices": 1}, {"overlap": "token-split"}, "tp is 1"),
        ("plan", CHAT | {"rate": 4, "max_devices": 1}, {"devices": 8}, "max_devices bounds the plan"),
        (
            "plan",
            CHAT | {"rate": 4, "max_devices": 1},
            {"gemm_backend": "deepgemm"},
            "nothing was measured",
        ),
        ("plan", MIXTURE | {"rate": 4, "max_devices": 2}, {"expert_placement": "moetuner"}, "no effect"),
        ("estimate", MIXTURE | {"concurrency": 4, "tp": 2}, {"expert_placement": "redundancy"}, "ep is 1"),
        ("simulate", BASES["simulate"] | {"tp": 2, "pp": 2}, {"overlap": "token-split"}, "no step is large enough"),
        ("simulate", BASES["simulate"] | {"replicas": 2}, {"router": "prefix-aware"}, "no two prompts"),
        ("simulate", BASES["simulate"] | {"replicas": 2}, {"router": "session-affinity"}, "no request belongs"),
        ("simulate", CHAT | {"users": 2, "num_requests": 12}, {"arrivals": "gamma"}, "do not arrive at a rate"),
    ],
)
def test_what_changes_nothing_says_why(command, base, setting, why):
    """Numbers are those without it, and the note of it is there with the setting alone."""
    (name,) = setting
    plain, asked = (getattr(orrery, command)(**base | more) for more in ({}, setting))
    assert numbers(asked) == numbers(plain)
    assert [note for note in asked.notes if note.startswith(name) and why in note]
    assert not [note for note in plain.notes if note.startswith(name) and why in note]


def test_an_overlap_that_pays_says_nothing_of_the_kind():
    """Prompts of 8,000 tokens on four devices: collectives hide, and their seconds are counted."""
    found = orrery.simulate(**CHAT | {"input_tokens": 8000, "rate": 4, "num_requests": 12}, tp=4, overlap="token-split")
    assert found.simulated.counters["hidden_s"] > 0.0
    assert not [note for note in found.notes if "no effect" in note]

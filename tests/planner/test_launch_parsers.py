"""Launches against the frameworks' own parsers, where a Python that has them is named; else against what was recorded.

    ORRERY_FRAMEWORKS_PYTHON=/path/to/python pytest tests/planner/test_launch_parsers.py

That Python has any of megatron-core (with megatron.training), deepspeed, accelerate, torchtitan with torchao, and
hydra-core. None of them needs a device for it.
"""

import json
import os
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
from training_launches import LAYOUTS, case, job

from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training import scripts
from orrery.planner.launch.training.manifest import training_manifests

PYTHON = os.environ.get("ORRERY_FRAMEWORKS_PYTHON", "")
PARSERS = Path(__file__).with_name("framework_parsers.py")

MORE = {
    "short last stage": (
        "deepseek-v3",
        "bf16",
        {"last_stage_layers": 1, "tp": 2, "pp": 16, "dp": 16, "ep": 32},
        "deepep",
    ),
    "short ends": (
        "llama-3.1-70b",
        "bf16",
        {
            "first_stage_layers": 4,
            "last_stage_layers": 4,
            "tp": 4,
            "pp": 8,
            "vp": 2,
            "dp": 4,
            "schedule": "interleaved",
        },
        "",
    ),
    "cut experts": ("mixtral-8x22b", "bf16", {"tp": 4, "dp": 8, "ep": 2, "etp": 4}, "all-gather"),
    "modules again": (
        "deepseek-v3",
        "bf16",
        {
            "tp": 8,
            "pp": 8,
            "dp": 8,
            "ep": 8,
            "recompute": "selective",
            "recompute_modules": ("core_attn", "mla_up_proj", "moe_act"),
        },
        "hybridep",
    ),
    "no sequence parallelism": ("qwen2.5-7b", "fp16", {"tp": 4, "dp": 2, "is_sequence_parallel": False}, ""),
}


def cases():
    """Every job and layout, by name."""
    yield from ((name, *case(name)) for name in LAYOUTS)
    for name, (model, recipe, sizes, dispatcher) in MORE.items():
        layout = TrainingLayout(**({"sharding": "zero1"} | sizes))
        yield name, job(model, layout, recipe, dispatcher=dispatcher), layout


def typed(script):
    """Words as a shell hands them over, the user's variables filled in."""
    filled = re.sub(r'"\$\{(\w+):-([^}]*)\}"', r"\2", "\n".join(script.arguments))
    filled = re.sub(r'"\$(\w+)"', lambda m: {"LEARNING_RATE": "3e-4"}.get(m[1], "7"), filled)
    return shlex.split(filled)


@pytest.mark.parametrize("name", [name for name, *_ in cases()])
def test_words_after_flags_are_those_that_were_recorded(name):
    plain, layout = next((j, x) for n, j, x in cases() if n == name)
    for framework, script in scripts(plain, layout).items():
        known = training_manifests()[framework]
        words = typed(script)
        for flag, after in zip(words, [*words[1:], "--"], strict=True):
            if flag.startswith("--") and known.switches:
                assert after.startswith("--") == (flag in known.switches), (framework, flag, after)
            if flag in known.choices:
                assert after in known.choices[flag], (framework, flag, after)


@cache
def parsed():
    """What each framework's parser took of every launch."""
    requested = [
        {
            "case": name,
            "framework": framework,
            "words": typed(script),
            "config": script.config,
            "devices": layout.num_devices,
            "degrees": {n: getattr(layout, n) for n in ("tp", "pp", "cp", "dp", "ep")},
            "environment": dict(script.environment),
        }
        for name, plain, layout in cases()
        for framework, script in scripts(plain, layout).items()
    ]
    done = subprocess.run(
        [PYTHON, str(PARSERS)], input=json.dumps(requested), capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert {x["framework"] for x in requested} == {x["framework"] for x in found["launches"]} | {*found["missing"]}
    return {(x["case"], x["framework"]): x for x in found["launches"]}


@pytest.mark.skipif(not PYTHON, reason="ORRERY_FRAMEWORKS_PYTHON names no Python that has the frameworks")
@pytest.mark.parametrize("name", [name for name, *_ in cases()])
def test_the_frameworks_own_parsers_take_every_launch(name):
    plain, layout = next((j, x) for n, j, x in cases() if n == name)
    for (case_name, framework), found in parsed().items():
        if case_name == name:
            assert found["said"] == "", (framework, found["said"])
            expected = EXPECTED.get(framework, lambda *_: {})(plain, layout)
            assert {k: found["read"][k] for k in expected} == expected, framework


def megatron(plain, layout):
    """What the core's configuration must say."""
    return {
        "tensor_model_parallel_size": layout.tp,
        "pipeline_model_parallel_size": layout.pp,
        "sequence_parallel": layout.tp > 1 and layout.is_sequence_parallel,
        "recompute_granularity": None if layout.recompute == "none" else layout.recompute,
        "num_layers_in_first_pipeline_stage": layout.first_stage_layers or None,
        "num_layers_in_last_pipeline_stage": layout.last_stage_layers or None,
    }


def megatron_lm(plain, layout):
    """Also what follows from several flags together."""
    kinds = {"": "alltoall", "all-gather": "allgather", "deepep": "flex", "hybridep": "flex"}
    turned = plain.model.rotation
    out = {
        "data_parallel_size": layout.dp,
        "virtual_pipeline_model_parallel_size": layout.vp if layout.vp > 1 else None,
        "bf16": plain.recipe.name not in ("fp16", "fp32"),
        "fp16": plain.recipe.name == "fp16",
    }
    if turned:
        out["rotary_base"] = round(turned.base)
    if any(b.experts for b in plain.model.blocks):
        out |= {"moe_token_dispatcher_type": kinds[plain.dispatcher], "expert_tensor_parallel_size": layout.etp}
    return megatron(plain, layout) | out


def torchtitan(plain, layout):
    """Degrees and batches."""
    return {"tp": layout.tp, "pp": layout.pp, "cp": layout.cp, "ep": layout.ep, "global_batch": plain.global_batch}


def deepspeed(plain, layout):
    """Stage, batch, precision."""
    return {
        "zero_stage": ["none", "zero1", "zero2", "zero3"].index(layout.sharding),
        "micro_batch": layout.micro_batch,
        "bf16": plain.recipe.name not in ("fp16", "fp32"),
        "hpz": layout.secondary_group or 1,
    }


def fsdp(plain, layout):
    """Ranks, and what is dropped after use."""
    return {
        "num_processes": layout.num_devices,
        "reshard": layout.sharding == "zero3",
        "recompute": layout.recompute == "full",
    }


EXPECTED = {
    "megatron-lm": megatron_lm,
    "megatron-bridge": megatron,
    "torchtitan": torchtitan,
    "deepspeed": deepspeed,
    "fsdp": fsdp,
}

"""ReaLHF: four models of one size on 8 to 128 devices; searched plans against plans made by hand."""

from collections.abc import Iterator
from math import exp, log
from typing import Any

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.rl_placement import train_rl_placement

GATHERED = (
    "every token waits for a gather of all layers over the network; the hybrid engine of DeepSpeed-Chat keeps some of "
    "them, which is not modelled"
)
DEALT = (
    "here the training of OpenRLHF runs on the device and its engines answer like the others'; its optimizer on the "
    "host, its small micro-batches and its eager layers are not charged"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The table of run times at 70B, and the means over the four sizes."""
    setup = paper.setups["four-70b"]
    largest, num_steps = times_s(setup), setup.number("num_steps")
    for claim, name, why in (("deepspeed-chat", "zero3", GATHERED), ("openrlhf", "disjoint", DEALT)):
        yield Prediction(
            claim=f"ratio-{claim}",
            predicted=largest[name] / largest["searched"],
            differs=why,
            because=f"{name} over the plan found",
        )
        yield Prediction(
            claim=f"run-{claim}", predicted=num_steps * largest[name], because=f"1600 iterations, {name}", differs=why
        )
    yield Prediction(
        claim="run", predicted=num_steps * largest["searched"], because="1600 iterations of the plan found"
    )
    times = [*(times_s(paper.setups[name]) for name in ("four-7b", "four-13b", "four-34b")), largest]
    ratios = [t[name] / t["searched"] for t in times for name in ("zero3", "disjoint") if name in t]
    gains = [t["symmetric"] / t["searched"] - 1.0 for t in times if "symmetric" in t]
    yield Prediction(
        claim="speedup",
        predicted=exp(sum(log(r) for r in ratios) / len(ratios)),
        differs=f"{GATHERED}; {DEALT}",
        because=f"four sizes and both baselines, {min(ratios):.1f} to {max(ratios):.1f}",
    )
    yield Prediction(
        claim="plan-improvement",
        predicted=sum(gains) / len(gains),
        because=f"four sizes, {percent(min(gains))} to {percent(max(gains))}; same kernels, only cuts and meshes "
        "differ",
        differs="the symmetric plan pays for tensor parallelism over the whole node in every call; "
        "how far the paper's own plan by hand was tuned is not written",
    )


def times_s(setup: Setup) -> dict[str, float]:
    """Seconds of an iteration of every kind of plan that fits, by ``orrery train --rl --rl-placement searched``."""
    found = train_rl_placement(**settings_of(setup))
    if isinstance(found, InfeasibleAnswer):
        return {}
    return {row["rl_placement"]: row["step_time_s"] for row in found.table("placements") if row["fits"]}


def settings_of(setup: Setup) -> dict[str, Any]:
    """Four models of the set-up's size on its devices; all responses are as long as the longest."""
    model, batch = setup.word("model"), int(setup.number("num_global_batch"))
    tokens = int(setup.number("output_tokens"))
    return {
        "rl_placement": "searched",
        "algorithm": "ppo",
        "model": model,
        "critic_model": model,
        "reward_model": model,
        "reference_model": model,
        "old_logprobs": False,
        "device": setup.word("device"),
        "devices": int(setup.number("num_devices")),
        "devices_per_node": int(setup.number("num_devices_per_node")),
        "framework": "megatron-lm",
        "engine": "vllm",
        "precision": "bf16",
        "prompts_per_step": batch,
        "generations_per_prompt": 1,
        "global_batch": batch // int(setup.number("num_mini_batches")),
        "input_tokens": int(setup.number("input_tokens")),
        "output_tokens": tokens,
        "max_output_tokens": tokens,
        "lengths": "constant",
    }

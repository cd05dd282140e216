"""EnergonAI: batches with and without their padding, and pipelines whose sends block or do not."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Ints
from orrery.scenario.simulate import SimulatedAnswer, simulate

LAYERS_PER_DEVICE = 12  # see [unstated] models
TENSOR_DEVICE, PIPELINE_DEVICE = "a100-sxm-80gb", "a100-pcie-80gb"  # see [unstated] devices
DEGREES = (2, 4, 8)  # tensor degrees; the mean of them is compared
STAGES = (2, 4)
BATCH, LONGEST_TOKENS, NUM_BATCHES = 16, 128, 8  # see [unstated] batch_and_padding
PIPELINE_BATCHES = 128
PACKED, PADDED = "packed-batch", "request-level"

CONFIG = {
    "model_type": "gpt2",
    "n_embd": 12288,
    "n_head": 96,
    "n_inner": 49152,
    "vocab_size": 50257,
    "n_positions": 2048,
}
"""Layers of GPT-3 175B: see [unstated] models."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Latency at every tensor degree, and scaling over stages."""
    mean = paper.setups["tensor-parallel"].number("input_mean_tokens")
    cuts = [1.0 - tensor_s(mean, n, PACKED) / tensor_s(mean, n, PADDED) for n in DEGREES]
    text = ", ".join(f"{c:.2f}" for c in cuts)
    fill = float(lengths(mean, NUM_BATCHES).mean()) / LONGEST_TOKENS
    yield Prediction(
        claim="latency",
        predicted=float(np.mean(cuts)),
        because=f"packed against padded batches that are {percent(fill)} full, tp 2, 4 and 8: {text}",
    )
    gains = {n: scaling(paper.setups["pipeline-parallel"], n) for n in STAGES}
    yield Prediction(
        claim="scalability",
        predicted=max(gains.values()) - 1.0,
        because="seconds of so many batches with sends that wait over those with sends that do not, "
        + ", ".join(f"{n} stages {gain:.3f}" for n, gain in gains.items()),
        differs="how much batches differ in length, which was not found: a send is below one percent of the work of "
        "twelve layers, and what a stage waits for is a longer batch ahead of it",
    )


def tensor_s(mean_tokens: float, num_devices: int, policy: str) -> float:
    """A batch's time, mean over batches."""
    requested = lengths(mean_tokens, NUM_BATCHES)
    return served_s(requested, LAYERS_PER_DEVICE * num_devices, device=TENSOR_DEVICE, tp=num_devices, policy=policy)


def scaling(setup: Setup, stages: int) -> float:
    """How many times faster so many stages are without waiting for sends."""
    requested = lengths(setup.number("input_mean_tokens"), PIPELINE_BATCHES)
    blocking, not_blocking = (
        served_s(
            requested,
            LAYERS_PER_DEVICE * stages,
            device=PIPELINE_DEVICE,
            pp=stages,
            policy=PACKED,
            pipeline_sends=sends,
        )
        for sends in ("blocking", "non-blocking")
    )
    return blocking / not_blocking


@cache
def _lengths(mean_tokens: float, batches: int) -> tuple[int, ...]:
    low = max(1, round(2.0 * mean_tokens) - LONGEST_TOKENS)
    drawn = np.random.default_rng(0).integers(low, round(2.0 * mean_tokens) - low + 1, BATCH * batches)
    drawn[::BATCH] = LONGEST_TOKENS
    return tuple(drawn.tolist())


def lengths(mean_tokens: float, batches: int) -> Ints:
    """Prompts equally likely as far below their mean as above it; the first of each batch is the longest there is."""
    return np.array(_lengths(mean_tokens, batches))


def served_s(requested: Ints, layers: int, **settings: Any) -> float:
    """Seconds a batch of ``orrery simulate``: prompts alone, a millisecond apart so that they keep their order."""
    with TemporaryDirectory() as folder:
        config, trace = Path(folder) / "config.json", Path(folder) / "prompts.jsonl"
        config.write_text(json.dumps({**CONFIG, "n_layer": layers}))
        rows = ({"timestamp": i, "input_length": n, "output_length": 1} for i, n in enumerate(requested.tolist()))
        trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = simulate(
            model=str(config),
            engine="fastertransformer",
            trace=str(trace),
            weights="fp16",
            max_num_seqs=BATCH * settings.get("pp", 1),
            max_num_batched_tokens=BATCH * LONGEST_TOKENS,
            **settings,
        )
    assert isinstance(found, SimulatedAnswer)
    return found.simulated.duration_s / (requested.size / BATCH)

"""EnergonAI: batches with and without their padding, and pipelines whose sends block or do not."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import inf

import numpy as np

from orrery.evidence.paper_file import Paper, Setup, get_paper
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.passes import pass_of
from orrery_papers.shared.setup import deployment, of_lengths

KEY = "energonai"
MODEL, LAYERS_PER_DEVICE = "gpt3-175b", 12  # see [unstated] models
TENSOR_DEVICE, PIPELINE_DEVICE = "a100-sxm-80gb", "a100-pcie-80gb"  # see [unstated] devices
DEGREES = (2, 4, 8)  # tensor degrees; the mean of them is compared
STAGES = (2, 4)
BATCH, LONGEST_TOKENS, NUM_BATCHES = 16, 128, 8  # see [unstated] batch_and_padding
PACKED, PADDED = "packed-batch", "request-level"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Latency at every tensor degree, and scaling over stages."""
    words = paper.setups["tensor-parallel"]
    cuts = [1.0 - latency_s(words, n, PACKED) / latency_s(words, n, PADDED) for n in DEGREES]
    text = ", ".join(f"{c:.2f}" for c in cuts)
    fill = float(lengths(words.number("input_mean_tokens")).mean()) / LONGEST_TOKENS
    yield Prediction(
        claim="latency",
        predicted=float(np.mean(cuts)),
        because=f"packed against padded batches that are {fill:.0%} full, tp 2, 4 and 8: {text}",
    )
    gains = [scaling(words, n, blocks=False) / scaling(words, n, blocks=True) - 1.0 for n in STAGES]
    yield Prediction(
        claim="scalability",
        predicted=max(gains),
        because="throughput of the stages over as many lone ones, sends that do not wait against sends that do",
    )


def serving(words: Setup, layout: str, layers: int, device: str = TENSOR_DEVICE) -> Deployment:
    """Deployment of ``layers`` layers of the model, in 16 bits."""
    return _deployed(words.name, layout, layers, device)


@cache
def _deployed(setup: str, layout: str, layers: int, device: str) -> Deployment:
    """One object for equal deployments, so that their tables keep."""
    found = deployment(
        get_paper(KEY).setups[setup],
        device=device,
        model=MODEL,
        layout=layout,
        engine="fastertransformer",
        max_num_seqs=BATCH,
        max_num_batched_tokens=BATCH * LONGEST_TOKENS,
    )
    block = replace(found.model.blocks[0], count=layers)
    library = replace(found.engine, request_s=0.0, per_prompt_token_s=0.0)  # it is given tokens, in their order
    return replace(found, model=replace(found.model, blocks=(block,)), engine=library)


@cache
def lengths(mean_tokens: float) -> Ints:
    """Prompts equally likely as far below their mean as above it; the first of each batch is the longest there is."""
    low = max(1, round(2.0 * mean_tokens) - LONGEST_TOKENS)
    drawn = np.random.default_rng(0).integers(low, round(2.0 * mean_tokens) - low + 1, BATCH * NUM_BATCHES)
    drawn[::BATCH] = LONGEST_TOKENS
    return drawn


def load(words: Setup) -> Requests:
    """Prompts alone (one token comes back), all at once."""
    requested = lengths(words.number("input_mean_tokens"))
    return of_lengths(requested, np.ones_like(requested), inf)


def _served(words: Setup, d: Deployment, policy: str) -> Simulated | Infeasible:
    service = Service(pools=(Pool(deployment=d),), policy=policy, prefix_caching=False)
    return simulate(service, load(words))


def latency_s(words: Setup, num_devices: int, policy: str) -> float:
    """A batch's time, mean over batches."""
    d = serving(words, f"tp{num_devices}", LAYERS_PER_DEVICE * num_devices)
    out = _served(words, d, policy)
    return inf if isinstance(out, Infeasible) else out.duration_s / NUM_BATCHES


def scaling(words: Setup, stages: int, *, blocks: bool) -> float:
    """Batches a second of so many stages over so many times those of one, each stage with as many layers."""
    alone = serving(words, "tp1 pp1", LAYERS_PER_DEVICE, PIPELINE_DEVICE)
    cut = serving(words, f"tp1 pp{stages}", LAYERS_PER_DEVICE * stages, PIPELINE_DEVICE)
    tokens = lengths(words.number("input_mean_tokens")).reshape(NUM_BATCHES, BATCH).sum(axis=1)
    one_s = pass_of(alone, packed(tokens)).total_s
    done = pass_of(cut, packed(tokens))
    work_s, send_s = done.kernels_s / stages, done.network_s / (stages - 1)
    return float(one_s.sum()) / through_s(work_s, send_s, stages, blocks=blocks)


def packed(tokens: Ints) -> Batch:
    """Batches of prompts whose tokens stand in one row."""
    return Batch(
        prompt_sequences=np.full_like(tokens, BATCH),
        prompt_tokens=tokens // BATCH,
        prompt_context_tokens=tokens // BATCH,
        decode_sequences=np.zeros_like(tokens),
        decode_context_tokens=np.zeros_like(tokens),
    )


def through_s(work_s: Floats, send_s: Floats, stages: int, *, blocks: bool) -> float:
    """When the last batch leaves a line of stages that are never short of batches, less the time to fill it.

    A send that blocks begins when both its ends are free, and holds both until it is through. One that does not block
    leaves at once, its sender computes on, and what arrives waits.
    """
    free_s = np.zeros(stages)
    first_s = 0.0
    for b, (work, send) in enumerate(zip(work_s.tolist(), send_s.tolist(), strict=True)):
        at_s = free_s[0]
        for s in range(stages):
            done_s = max(at_s, free_s[s]) + work
            free_s[s] = done_s
            if s + 1 < stages:
                at_s = (max(done_s, free_s[s + 1]) if blocks else done_s) + send
                free_s[s] = at_s if blocks else done_s
                free_s[s + 1] = at_s if blocks else free_s[s + 1]
        if b == 0:
            first_s = float(free_s[-1]) - work
    return float(free_s[-1]) - first_s

"""FlexLLM: finetuning tokens in the room that requests leave in a step, and the activations that they keep."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from orrery.catalog.traces import load_trace
from orrery.evidence.paper_file import Paper, Setup, get_paper
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.execution.step import step
from orrery.scenario.train import train
from orrery.serving.arrivals import arrivals
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Filling, Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.setup import deployment

KEY, VERSION = "flexllm", "0.8"  # of vLLM, which mixes prompts and answers as the paper's engine does
DEVICE, REPLICAS = "a100-sxm-80gb", 4  # see [unstated] devices, load_split
LIGHT_FRAC = 0.2  # of the heavy load, which is the sweep's most
NUM_REQUESTS = 2000
BURSTINESS = 0.25  # gaps vary twice as much as Poisson's: see [unstated] trace
ALONE_TOKENS, SEQUENCE_TOKENS = 8192, 8192  # a sequence a pass: see [unstated] finetuning_lengths
BASELINE_SHARE = 0.25  # of the devices: see [unstated] load_split


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model, how many devices a replica takes, and its limit on the time per token."""

    model: str
    layout: str
    tpot_s: float


CASES = (
    Case(model="llama-3.1-8b", layout="tp1", tpot_s=0.050),
    Case(model="qwen2.5-14b", layout="tp2", tpot_s=0.075),
    Case(model="qwen2.5-32b", layout="tp4", tpot_s=0.075),
)
"""See [unstated] devices, objectives."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Throughput that finetuning keeps under load, against devices of its own, and memory with and without pruning."""
    words = paper.setups["co-serving"]
    heavy_per_s = words.number("num_requests_per_s")
    for claim, rate in (("finetuning-heavy", heavy_per_s), ("finetuning-light", LIGHT_FRAC * heavy_per_s)):
        yield Prediction(
            claim=claim,
            predicted=float(np.mean([against_own_devices(words, c, rate) for c in CASES])),
            because="all devices beside requests, over a quarter of the devices with nothing else to do",
        )
    heavy = [retained(words, c, heavy_per_s) for c in CASES]
    text = ", ".join(f"{x:.2f}" for x in heavy)
    for claim in ("finetuning-retained", "finetuning-retained-latest"):
        yield Prediction(
            claim=claim,
            predicted=min(heavy),
            because=f"least of the models ({text}) at {heavy_per_s:g} requests a second, over finetuning alone in "
            "steps under the same limit",
            differs="how many replicas share the stated rate, and the lengths of the requests, are not written: each "
            "token served takes the place of half a token trained",
        )
    yield from _memory()


def _memory() -> Iterator[Prediction]:
    found = [(trained_bytes(case, prunes=False), trained_bytes(case, prunes=True)) for case in CASES]
    ratios = [whole["activations_bytes"] / pruned["activations_bytes"] for whole, pruned in found]
    cuts = [1.0 - pruned["peak_bytes"] / whole["peak_bytes"] for whole, pruned in found]
    yield Prediction(
        claim="activation-memory",
        predicted=max(ratios),
        because="what a framework keeps for low-rank adapters over what their gradients read; attention's matrices are "
        "kept by neither",
        differs="8 times less follows where the other system keeps every operator's output, and attention's scores and "
        "weights",
    )
    for claim in ("end-to-end-memory", "memory-latest"):
        yield Prediction(
            claim=claim,
            predicted=max(cuts),
            because="weights, adapters, logits and one sequence's activations, with and without pruning",
            differs="what the other system keeps, and logits of the whole sequence, which are kept here in both",
        )


def trained_bytes(case: Case, *, prunes: bool) -> Mapping[str, float]:
    """Memory of the fullest device as ``orrery train --task lora`` has it, one sequence a step."""
    devices = int(case.layout.removeprefix("tp"))
    found = train(
        model=case.model,
        device=DEVICE,
        devices=devices,
        tp=devices,
        seq_len=SEQUENCE_TOKENS,
        global_batch=1,
        task="lora",
        prune_activations=prunes,
    )
    return found.to_json()["memory"][0]


def serving(words: Setup, case: Case) -> Deployment:
    """One replica of a case."""
    return _deployed(words.name, case)


@cache
def _deployed(setup: str, case: Case) -> Deployment:
    """One object for equal deployments, so that their tables keep."""
    words = get_paper(KEY).setups[setup]
    return deployment(words, device=DEVICE, model=case.model, layout=case.layout, version=VERSION)


def alone_tokens_per_s(d: Deployment) -> float:
    """Trained tokens a second of devices with nothing else to do: whole sequences, forward and backward."""
    return _trained_per_s(d, ALONE_TOKENS)


def alone_within_tokens_per_s(d: Deployment, limit_s: float) -> float:
    """The same where steps stay below the limit that requests would have."""
    return _trained_per_s(d, _largest_step_tokens(d, limit_s))


def _trained_per_s(d: Deployment, tokens: int) -> float:
    host_s = (1.0 - d.engine.overlap_frac) * d.engine.step_s
    return tokens / (PASSES * (float(_step_s(d, np.array([tokens]))[0]) + host_s))


def _largest_step_tokens(d: Deployment, limit_s: float) -> int:
    """The most finetuning tokens in a step without requests that takes no longer than the limit."""
    tokens = np.arange(16, ALONE_TOKENS + 1, 16)
    return int(tokens[_step_s(d, tokens) <= limit_s].max(initial=16))


def _step_s(d: Deployment, tokens: Ints) -> Floats:
    """Steps of finetuning tokens only; attention is left out, as it is in the steps beside requests."""
    none = np.zeros_like(tokens)
    batch = Batch(
        prompt_sequences=none + 1,
        prompt_tokens=tokens,
        prompt_context_tokens=tokens,
        decode_sequences=none,
        decode_context_tokens=none,
    )
    return np.sum([p.time_s for p in step(d, batch).parts if not p.name.startswith("attention")], axis=0)


def retained(words: Setup, case: Case, rate_per_s: float) -> float:
    """The share of finetuning without requests, under the same limit, that a replica keeps under its load."""
    d = serving(words, case)
    return beside_tokens_per_s(d, case, rate_per_s) / alone_within_tokens_per_s(d, case.tpot_s)


def beside_tokens_per_s(d: Deployment, case: Case, rate_per_s: float) -> float:
    """Trained tokens a second of a replica beside its share of the load; idle moments train alone."""
    filling = Filling(step_tokens=_largest_step_tokens(d, case.tpot_s), until_s=case.tpot_s)
    service = Service(pools=(Pool(deployment=d),), policy="chunked-prefill", filling=filling, prefix_caching=False)
    out = simulate(service, load(rate_per_s / REPLICAS))
    if isinstance(out, Infeasible):
        return 0.0
    beside = out.counters["finetune_tokens"] / out.duration_s
    return beside + out.idle_frac * alone_within_tokens_per_s(d, case.tpot_s)


PASSES = 2.0
"""A token trained passes the model twice: forward, and backward to the inputs, since the base weights are frozen."""


def against_own_devices(words: Setup, case: Case, rate_per_s: float) -> float:
    """Finetuning on all devices beside requests, over finetuning on a part of them alone."""
    d = serving(words, case)
    return beside_tokens_per_s(d, case, rate_per_s) / (BASELINE_SHARE * alone_tokens_per_s(d))


def load(rate_per_s: float) -> Requests:
    """Chat requests that come in bursts."""
    trace = load_trace("chat")
    at = arrivals("gamma", NUM_REQUESTS, rate_per_s, 0, burstiness=BURSTINESS)
    return Requests(
        arrive_s=at, input_tokens=trace.input_tokens[:NUM_REQUESTS], output_tokens=trace.output_tokens[:NUM_REQUESTS]
    )

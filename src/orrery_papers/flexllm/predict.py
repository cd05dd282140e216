"""FlexLLM: finetuning tokens in the room that requests leave in a step, and the activations that they keep."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from orrery.catalog.traces import load_trace
from orrery.evidence.paper_file import Paper, Setup, get_paper
from orrery.evidence.prediction import Prediction
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.scenario.train import TrainAnswer, train
from orrery.serving.arrivals import arrivals
from orrery.serving.filling import Finetuned, finetuned
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Filling, Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.setup import deployment

KEY, VERSION = "flexllm", "0.8"  # of vLLM, which mixes prompts and answers as the paper's engine does
DEVICE, REPLICAS = "a100-sxm-80gb", 4  # see [unstated] devices, load_split
LIGHT_FRAC = 0.2  # of the heavy load, which is the sweep's most
NUM_REQUESTS = 2000
BURSTINESS = 0.25  # gaps vary twice as much as Poisson's: see [unstated] trace
SEQUENCE_TOKENS = 8192  # a sequence a pass: see [unstated] finetuning_lengths
BASELINE_SHARE = 0.25  # of the devices: see [unstated] load_split


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model, how many devices a replica takes, and its limit on the time per token."""

    model: str
    layout: str
    tpot_s: float

    @property
    def devices(self) -> int:
        """Devices of a replica."""
        return int(self.layout.removeprefix("tp"))


CASES = (
    Case(model="llama-3.1-8b", layout="tp1", tpot_s=0.045),
    Case(model="qwen2.5-14b", layout="tp2", tpot_s=0.075),
    Case(model="qwen2.5-32b", layout="tp4", tpot_s=0.075),
)
"""See [unstated] devices; limits and degrees as the authors' code has them."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Throughput that finetuning keeps under load, against devices of its own, and memory with and without pruning."""
    words = paper.setups["co-serving"]
    heavy_per_s = words.number("num_requests_per_s")
    for claim, rate in (("finetuning-heavy", heavy_per_s), ("finetuning-light", LIGHT_FRAC * heavy_per_s)):
        yield Prediction(
            claim=claim,
            predicted=float(np.mean([against_own_devices(words, c, rate) for c in CASES])),
            because="all devices beside requests, over LLaMA-Factory on a quarter of the devices and no more",
        )
    heavy = [retained(words, c, heavy_per_s) for c in CASES]
    text = ", ".join(f"{x:.2f}" for x in heavy)
    left = [x / retained(words, c, LIGHT_FRAC * heavy_per_s) for c, x in zip(CASES, heavy, strict=True)]
    least, most = min(left), max(left)
    for claim in ("finetuning-retained", "finetuning-retained-latest"):
        yield Prediction(
            claim=claim,
            predicted=min(heavy),
            because=f"least of the models ({text}) at {heavy_per_s:g} requests a second, over finetuning alone in "
            "steps under the same limit",
            differs="what the peak is over is not written: over what the lightest load leaves it is "
            f"{least:.2f} to {most:.2f}. A step beside requests costs weights and cache, whatever it trains, and of "
            "256 tokens those that are served take the forward passes' place",
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
    found = train(
        model=case.model,
        device=DEVICE,
        devices=case.devices,
        tp=case.devices,
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
    budget = int(words.number("max_num_batched_tokens"))
    return deployment(
        words,
        device=DEVICE,
        model=case.model,
        layout=case.layout,
        version=VERSION,
        max_num_batched_tokens=budget,
        max_num_seqs=budget,
    )


def retained(words: Setup, case: Case, rate_per_s: float) -> float:
    """The share of finetuning without requests, under the same limit, that a replica keeps under its load."""
    found = beside(serving(words, case), case, rate_per_s)
    return (found.retained_frac or 0.0) if found else 0.0


def beside(d: Deployment, case: Case, rate_per_s: float) -> Finetuned | None:
    """Finetuning of a replica beside its share of the load, as ``orrery simulate --fill-tokens`` has it: forward within
    the steps' budget of tokens, and back one layer a step."""
    filling = Filling(
        step_tokens=d.max_num_batched_tokens, until_s=case.tpot_s, sequence_tokens=SEQUENCE_TOKENS, backward_layers=1
    )
    service = Service(pools=(Pool(deployment=d),), policy="chunked-prefill", filling=filling, prefix_caching=False)
    out = simulate(service, load(rate_per_s / REPLICAS))
    return None if isinstance(out, Infeasible) else finetuned(service, out)


def against_own_devices(words: Setup, case: Case, rate_per_s: float) -> float:
    """Finetuning on all devices beside requests, over finetuning of whole sequences on a part of them alone."""
    if (found := beside(serving(words, case), case, rate_per_s)) is None:
        return 0.0
    return (found.tokens_per_s + found.idle_tokens_per_s) / (BASELINE_SHARE * own_devices_tokens_per_s(case))


@cache
def own_devices_tokens_per_s(case: Case) -> float:
    """Finetuning by LLaMA-Factory on a replica's devices, as ``orrery train --task lora`` has it."""
    found = train(
        model=case.model,
        device=DEVICE,
        devices=case.devices,
        seq_len=SEQUENCE_TOKENS,
        global_batch=case.devices,
        micro_batch=1,
        task="lora",
        framework="llama-factory",
        recompute="full",
        sharding="zero3" if case.devices > 1 else "none",
    )
    assert isinstance(found, TrainAnswer)
    return case.devices * found.tokens_per_s_per_device


def load(rate_per_s: float) -> Requests:
    """Chat requests that come in bursts."""
    trace = load_trace("chat")
    at = arrivals("gamma", NUM_REQUESTS, rate_per_s, 0, burstiness=BURSTINESS)
    return Requests(
        arrive_s=at, input_tokens=trace.input_tokens[:NUM_REQUESTS], output_tokens=trace.output_tokens[:NUM_REQUESTS]
    )

"""FlexLLM: finetuning tokens in the room that requests leave in a step, and the activations that they keep."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orrery.catalog.traces import load_trace
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.reproduce.prediction import Prediction
from orrery.evidence.reproduce.setup import deployment
from orrery.execution.batch import Batch
from orrery.execution.finetune_memory import activations, adapter_bytes
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.execution.step import step
from orrery.serving.arrivals import arrivals
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Filling, Pool, Service
from orrery.serving.simulation.simulate import simulate

DEVICE, REPLICAS = "a100-sxm-80gb", 4  # see [unstated] devices, load_split
HEAVY_PER_S, LIGHT_PER_S = 20.0, 4.0  # of all replicas: the sweep's most, and a fifth of it
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
    heavy = [retained(words, c, HEAVY_PER_S) for c in CASES]
    light = [retained(words, c, LIGHT_PER_S) for c in CASES]
    said = ", ".join(f"{x:.2f}" for x in heavy)
    for claim in ("finetuning-retained", "finetuning-retained-latest"):
        yield Prediction(
            claim=claim, predicted=min(heavy),
            because=f"least of the models ({said}) at {HEAVY_PER_S:g} requests a second, over finetuning alone",
        )  # fmt: skip
    for claim, kept in (("finetuning-heavy", heavy), ("finetuning-light", light)):
        yield Prediction(
            claim=claim, predicted=float(np.mean(kept)) / BASELINE_SHARE,
            because="all devices at the share that is kept, over a quarter of the devices with nothing else to do",
        )  # fmt: skip
    yield from _memory(words)


def _memory(words: Setup) -> Iterator[Prediction]:
    ratios: list[float] = []
    cuts: list[float] = []
    for case in CASES:
        model = serving(words, case).model
        kept = activations(model, SEQUENCE_TOKENS)
        fixed = 2.0 * model.num_parameters + adapter_bytes(model)
        whole, pruned = (fixed + SEQUENCE_TOKENS * x for x in (kept.all_bytes, kept.needed_bytes))
        ratios.append(kept.ratio)
        cuts.append(1.0 - pruned / whole)
    yield Prediction(
        claim="activation-memory", predicted=max(ratios),
        because="every operator's output over what adapters need; attention's matrices are kept by neither",
    )  # fmt: skip
    for claim in ("end-to-end-memory", "memory-latest"):
        yield Prediction(
            claim=claim, predicted=max(cuts),
            because="weights, adapters and one sequence's activations, with and without pruning",
        )  # fmt: skip


def serving(words: Setup, case: Case) -> Deployment:
    """One replica of a case."""
    key = (words.name, case)
    if key not in _KEPT:
        _KEPT[key] = deployment(words, device=DEVICE, model=case.model, layout=case.layout, version="0.8")
    return _KEPT[key]


_KEPT: dict[tuple[str, Case], Deployment] = {}


def alone_tokens_per_s(d: Deployment, pass_ratio: float) -> float:
    """Trained tokens a second of a replica without requests: whole sequences, forward and backward."""
    none, tokens = np.array([0]), np.array([ALONE_TOKENS])
    batch = Batch(
        prompt_sequences=np.array([1]), prompt_tokens=tokens, prompt_context_tokens=tokens, decode_sequences=none,
        decode_context_tokens=none,
    )  # fmt: skip
    return ALONE_TOKENS / (pass_ratio * float(step(d, batch).time_s[0]))


def retained(words: Setup, case: Case, rate_per_s: float) -> float:
    """The share of stand-alone finetuning that a replica keeps under its share of the load, within the limit."""
    d = serving(words, case)
    alone = alone_tokens_per_s(d, PASSES)
    filling = Filling(step_tokens=ALONE_TOKENS, until_s=case.tpot_s)
    service = Service(pools=(Pool(deployment=d),), policy="chunked-prefill", filling=filling, prefix_caching=False)
    out = simulate(service, load(rate_per_s / REPLICAS))
    if isinstance(out, Infeasible):
        return 0.0
    beside = out.counters["finetune_tokens"] / out.duration_s
    return min(1.0, beside / alone + out.idle_frac)  # idle machines train alone


PASSES = 2.0
"""A token trained passes the model twice: forward, and backward to the inputs, since the base weights are frozen."""


def load(rate_per_s: float) -> Requests:
    """Chat requests that come in bursts."""
    trace = load_trace("chat")
    at = arrivals("gamma", NUM_REQUESTS, rate_per_s, 0, burstiness=BURSTINESS)
    return Requests(
        arrive_s=at, input_tokens=trace.input_tokens[:NUM_REQUESTS], output_tokens=trace.output_tokens[:NUM_REQUESTS]
    )

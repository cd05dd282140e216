"""NanoFlow: offline serving of dense and sparse models, in sequence and with nano-batches, against the compute roof."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import inf

import numpy as np

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.reproduce.passes import overlapped_s, pass_of
from orrery.evidence.reproduce.prediction import Prediction
from orrery.evidence.reproduce.setup import all_equal, deployment, length_of, requests
from orrery.execution.batch import Batch
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.execution.step import step
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate

BASELINES = {
    "vllm": ("vllm", "0.5.3", "chunked-prefill", (512,)),
    "deepspeed-fastgen": ("deepspeed-mii", "0.2.3", "chunked-prefill", (512, 1024, 2048, 4096)),
    "tensorrt-llm": ("tensorrt-llm", "0.8.0", "", (8192,)),
}
"""The baselines' engines, versions, policies, and token budgets (of several the best): see [unstated] baselines."""

OURS = ("vllm", "0.14")
"""NanoFlow's host: an engine of the catalogue that schedules ahead; see [unstated] host."""

NUM_REQUESTS = 4000  # see [unstated] num_requests
TABLE_2 = (512, 1024)  # prompt and answer whose cache table 2 states: see [unstated] table_2_lengths
TABLE_2_PARTS = {
    "step_time_kqv": ("qkv",), "step_time_o": ("out",), "step_time_up_gate": ("gate_up",), "step_time_down": ("down",),
    "step_time_decode_attention": ("attention decode",), "step_time_prefill_attention": ("attention prefill",),
    "step_time_network": ("all-reduce",),
}  # fmt: skip
CATALOGUE = {"deepseek-67b": "deepseek-llm-67b-base", "llama-3-70b": "llama-3-70b", "qwen2-72b": "qwen2-72b"}
"""Names of the set-up that the catalogue writes otherwise."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """The roof, the step's table, the offline runs, and the overlaps one by one."""
    claims = {c.id: c for c in paper.claims}
    yield from _steps(claims)
    yield from _constant(claims)
    yield from _datasets(claims, paper.setups)
    yield from _models(claims)
    yield from _ablation(claims)


def optimal_tokens_per_s(d: Deployment, flops_per_s: float = 0.0) -> float:
    """Tokens a second of one device if only products of active weights took time: rate / (2 parameters) [equation 5]."""
    peak = flops_per_s or d.cluster.device.dense_flops_per_s["fp16"]
    return peak / (2.0 * d.model.num_active_parameters)


def dense(words: Setup, model: str = "", layout: str = "") -> Deployment:
    """The set-up's model under NanoFlow, at the set-up's dense batch."""
    tokens, sequences = (int(words.number(n)) for n in ("max_num_batched_tokens", "max_num_seqs"))
    return _deployed(words, OURS, tokens, sequences, model, layout)


_KEPT: dict[tuple[object, ...], Deployment] = {}


def _deployed(
    words: Setup, engine: tuple[str, str], tokens: int, sequences: int = 0, model: str = "", layout: str = ""
) -> Deployment:  # fmt: skip
    """One object for equal deployments, so that their tables keep."""
    key = (words.word("device"), model or words.word("model"), layout or words.word("layout"), engine, tokens, sequences)
    if key not in _KEPT:
        _KEPT[key] = deployment(
            words, model=model, layout=layout, engine=engine[0], version=engine[1], max_num_batched_tokens=tokens,
            max_num_seqs=sequences,
        )  # fmt: skip
    return _KEPT[key]


def steady(dense_tokens: int, input_tokens: int, output_tokens: int) -> Batch:
    """A step of a long run: prompts and answers in the ratio of their tokens, answers on average half made."""
    decodes = round(dense_tokens * output_tokens / (input_tokens + output_tokens))
    prompts = max(1, round((dense_tokens - decodes) / input_tokens))
    new = (dense_tokens - decodes) // prompts
    return Batch(
        prompt_sequences=np.array([prompts]), prompt_tokens=np.array([new]),
        prompt_context_tokens=np.array([max(new, input_tokens)]), decode_sequences=np.array([decodes]),
        decode_context_tokens=np.array([input_tokens + output_tokens // 2]),
    )  # fmt: skip


def _steps(claims: Mapping[str, Claim]) -> Iterator[Prediction]:
    words = claims["optimal"].setup
    d = dense(words)
    yield Prediction(
        claim="optimal", predicted=optimal_tokens_per_s(d),
        because="16-bit peak of one device over twice the parameters that a token passes",
    )  # fmt: skip
    done = step(d, steady(int(words.number("max_num_batched_tokens")), *TABLE_2))
    for claim in claims.values():
        if names := TABLE_2_PARTS.get(claim.metric):
            found = sum(float(p.time_s[0]) for p in done.parts if p.name in names)
            yield Prediction(claim=claim.id, predicted=found, because=f"{names[0]}, all layers, dense batch of 2048")


def _constant(claims: Mapping[str, Claim]) -> Iterator[Prediction]:
    words = claims["best-share-of-optimal"].setup
    pairs = list(zip(words.numbers("input_tokens_swept"), words.numbers("output_tokens_swept"), strict=True))
    runs = [all_equal(int(i), int(o), inf, NUM_REQUESTS) for i, o in pairs]
    ours = [served(dense(words), r, "nano-batches") for r in runs]
    roof = claims["optimal"].low
    yield Prediction(
        claim="best-share-of-optimal", predicted=max(ours) / roof, because="best of three pairs, nano-batches, over the stated optimum"
    )
    yield from _against(claims, "constant", words, runs, ours)
    for name, claim in (("vllm", "vllm"), ("deepspeed-fastgen", "fastgen"), ("tensorrt-llm", "tensorrt")):
        theirs = [baseline(words, name, r) for r in runs]
        yield Prediction(
            claim=f"{claim}-share-of-optimal", predicted=float(np.mean(theirs)) / roof,
            because="mean of three pairs under the baseline engine, over the stated optimum",
        )  # fmt: skip


def _datasets(claims: Mapping[str, Claim], setups: Mapping[str, Setup]) -> Iterator[Prediction]:
    words = claims["datasets-vllm"].setup
    runs = [of_dataset(setups[name]) for name in ("splitwise", "lmsys", "sharegpt")]
    ours = [served(dense(words), r, "nano-batches") for r in runs]
    yield from _against(claims, "datasets", words, runs, ours)


def of_dataset(words: Setup) -> Requests:
    """Lengths with the stated means and deviations, all at once."""
    most = 4096.0  # the model's context
    return requests(length_of(words, "input"), length_of(words, "output"), inf, NUM_REQUESTS, most_tokens=most)


def _against(
    claims: Mapping[str, Claim], kind: str, words: Setup, runs: list[Requests], ours: list[float]
) -> Iterator[Prediction]:  # fmt: skip
    """NanoFlow over each baseline, mean over the runs."""
    for suffix, name in (("vllm", "vllm"), ("fastgen", "deepspeed-fastgen"), ("tensorrt", "tensorrt-llm")):
        theirs = [baseline(words, name, r) for r in runs]
        yield Prediction(
            claim=claims[f"{kind}-{suffix}"].id, predicted=float(np.mean([a / b for a, b in zip(ours, theirs, strict=True)])),
            because=f"offline tokens a second, nano-batches over {name}, mean of the runs",
        )  # fmt: skip


def _models(claims: Mapping[str, Claim]) -> Iterator[Prediction]:
    words = claims["other-models"].setup
    load = all_equal(int(words.number("input_tokens")), int(words.number("output_tokens")), inf, NUM_REQUESTS)
    peak = claims["optimal"].low * 2.0 * dense(words).model.num_active_parameters
    shares: list[float] = []
    for name in (n.strip() for n in words.word("models").split(",")):
        d = dense(words, model=CATALOGUE.get(name, name), layout="tp1" if name == "llama-3-8b" else "")
        shares.append(served(d, load, "nano-batches") / optimal_tokens_per_s(d, peak))
    mean = float(np.mean(shares))
    said = ", ".join(f"{s:.2f}" for s in shares)
    for claim in ("other-models", "other-models-first-version"):
        yield Prediction(claim=claim, predicted=mean, because=f"mean over the models ({said}), nano-batches over optimum")


def _ablation(claims: Mapping[str, Claim]) -> Iterator[Prediction]:
    """One overlap after another, on the steady step."""
    heavy, only = claims["overlap-network-and-memory"].setup, claims["overlap-network"].setup
    d, tokens = dense(heavy), int(heavy.number("max_num_batched_tokens"))
    mixed = pass_of(d, steady(tokens, int(heavy.number("input_tokens")), int(heavy.number("output_tokens"))))
    prompts = pass_of(d, steady(tokens, int(only.number("input_tokens")), 0))
    whole, halves = float(mixed.total_s[0]), float(mixed.halves_s[0])
    yield Prediction(
        claim="split-without-overlap", predicted=1.0 - whole / halves,
        because="two halves in turn read weights twice and fill waves worse",
    )  # fmt: skip
    for claim, done in (("overlap-network", prompts), ("overlap-network-and-memory", mixed)):
        yield Prediction(
            claim=claim, predicted=float(done.total_s[0] / overlapped_s(done, "nano-batches")[0]),
            because="a steady step in sequence over one with nano-batches",
        )  # fmt: skip
    words = claims["lmsys-rate"].setup
    run = of_dataset(words)
    yield Prediction(
        claim="lmsys-rate", predicted=served(dense(words), run, "nano-batches") / baseline(words, "tensorrt-llm", run),
        because="ratio of the highest throughputs, which bound the rates that keep the objective",
    )  # fmt: skip


def baseline(words: Setup, name: str, load: Requests) -> float:
    """A baseline's tokens a second and device, steps in sequence, under the engine's own limit of sequences."""
    engine, version, policy, budgets = BASELINES[name]
    runs = [served(_deployed(words, (engine, version), tokens), load, "sequential", policy) for tokens in budgets]
    return max(runs)


def served(d: Deployment, load: Requests, overlap: str, policy: str = "chunked-prefill") -> float:
    """Prompt and answer tokens a second and device of an offline run."""
    out = _run(d, load, overlap, policy)
    if isinstance(out, Infeasible):
        return 0.0
    return float((load.input_tokens + load.output_tokens).sum()) / out.duration_s / d.layout.num_devices


@lru_cache(maxsize=256)
def _run(d: Deployment, load: Requests, overlap: str, policy: str) -> Simulated | Infeasible:
    service = Service(pools=(Pool(deployment=d),), policy=policy, overlap=overlap, prefix_caching=False)
    return simulate(service, load)

"""Infinite-LLM: instances that lend each other cache blocks, against instances on their own and one large one."""

from collections.abc import Iterator

import numpy as np

from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible, memory_of
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.setup import deployment, of_lengths

MODEL, SMALLER_DEVICE = "llama-2-7b", "a100-sxm-40gb"
"""One device an instance; and the other device that the paper may have used: [unstated] memory_per_device."""

NODE = 8
"""Instances of the throughput run, one a device of a node."""

SHORT_TOKENS, ANSWER_TOKENS, LONG_FRAC = 1000, 324, 0.01
"""The mix of lengths: [unstated] traces and answers."""

MIN_LONG_TOKENS = 100_000

COUNT = 1200

KNOBS = {"reserves_output": 1.0}
"""A request starts when its whole answer fits, so that no long prompt is computed twice."""


def instance_tokens(setup: Setup, device: str = "") -> float:
    """Tokens of one sequence that one instance holds."""
    found = memory_of(deployment(setup, model=MODEL, device=device))
    return 0.0 if isinstance(found, Infeasible) else found.kv_capacity_tokens


def pooled(setup: Setup, instances: int, *, lends: bool = True) -> Service:
    """Service of ``instances`` instances with one device each."""
    pool = Pool(deployment=deployment(setup, model=MODEL), replicas=instances)
    return Service(
        pools=(pool,), policy="prefill-first", policy_knobs=KNOBS, lends_cache=lends, is_same_node=True
    )  # fmt: skip


def mixed(setup: Setup, count: int = COUNT, seed: int = 0) -> Requests:
    """Short requests, and one in a hundred nearly as long as one instance can hold; all at once."""
    random = stream(seed, "lengths/long")
    inputs = np.full(count, SHORT_TOKENS)
    is_long = random.random(count) < LONG_FRAC
    most = instance_tokens(setup) - 2 * ANSWER_TOKENS
    inputs[is_long] = random.uniform(MIN_LONG_TOKENS, most, int(is_long.sum())).astype(np.int64)
    return of_lengths(inputs, np.full(count, ANSWER_TOKENS), float("inf"))


def tokens_per_s(service: Service, sent: Requests) -> float:
    """Prompt and answer tokens over the time to the last of them; 0 where some were not served."""
    run = simulate(service, sent)
    if isinstance(run, Infeasible) or not np.isfinite(run.finish_s).all():
        return 0.0
    return float((sent.input_tokens + sent.output_tokens).sum()) / run.duration_s


def predict(paper: Paper) -> Iterator[Prediction]:
    """The longest context from the pool's memory; throughput on mixed lengths."""
    setup = paper.setups["pool"]
    one, devices, tried = instance_tokens(setup), setup.number("num_devices"), setup.number("input_most_tokens")
    small = instance_tokens(setup, SMALLER_DEVICE) * devices
    longest = min(one * devices, tried)
    holds = f"32 instances hold {one * devices:.3g} tokens, {small:.3g} with 40 GB each; the paper tried {tried:.2g}"
    yield Prediction(claim="longest-context", predicted=longest, because=holds)
    longer = f"one instance holds {one:.3g} tokens; {holds}"
    yield Prediction(claim="context", predicted=longest / one, because=longer)
    sent = mixed(setup)
    lending, alone = (tokens_per_s(pooled(setup, NODE, lends=x), sent) for x in (True, False))
    if lending and alone:
        words = f"{NODE} instances: {lending:.4g} tokens/s lending, {alone:.4g} each on its own"
        for claim in ("throughput", "throughput-latest"):
            yield Prediction(claim=claim, predicted=lending / alone, because=words, differs=MIX)


MIX = "the mix of lengths and its rate, which were not found"

"""Infinite-LLM: instances that lend each other cache blocks, against instances on their own and one large one."""

from collections.abc import Iterator

import numpy as np

from orrery.base.units import percent
from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible, memory_of
from orrery.scenario.capacity_left import room_of
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

LONG_FRACS = (0.0, 0.005, LONG_FRAC, 0.02, 0.05)
"""Shares of long requests over which the gain is drawn."""

MIN_LONG_TOKENS = 100_000

MAX_MODEL_TOKENS = 100_000_000
"""No limit of the model: its positions are extended."""

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
    return Service(pools=(pool,), policy="prefill-first", policy_knobs=KNOBS, lends_cache=lends, is_same_node=True)


def mixed(setup: Setup, count: int = COUNT, seed: int = 0, long_frac: float = LONG_FRAC) -> Requests:
    """Short requests, and one in a hundred nearly as long as one instance can hold; all at once."""
    random = stream(seed, "lengths/long")
    inputs = np.full(count, SHORT_TOKENS)
    is_long = random.random(count) < long_frac
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
    one, devices, tried = instance_tokens(setup), int(setup.number("num_devices")), setup.number("input_most_tokens")
    longest = longest_tokens(setup, devices)
    small = longest_tokens(setup, devices, SMALLER_DEVICE)
    holds = f"{devices} instances hold {longest:.3g} tokens, {small:.3g} with 40 GB each; the paper tried {tried:.2g}"
    yield Prediction(claim="longest-context", predicted=longest, because=holds, differs=TRIED)
    longer = f"one instance holds {one:.3g} tokens; {holds}"
    yield Prediction(claim="context", predicted=longest / one, because=longer, differs=TRIED)
    curve = {share: gain(setup, share) for share in LONG_FRACS}
    if curve[LONG_FRAC]:
        over_large = [gain(setup, share, one_large(setup, NODE)) for share in LONG_FRACS]
        words = f"{NODE} instances, over as many on their own, by the share of long requests: " + ", ".join(
            f"{percent(share, 1)} {value:.2f}x" for share, value in curve.items()
        )
        words += f"; over one instance of all devices {min(over_large):.2f} to {max(over_large):.2f}x"
        for claim in ("throughput", "throughput-latest"):
            yield Prediction(claim=claim, predicted=curve[LONG_FRAC], because=words, differs=MIX)


def gain(setup: Setup, long_frac: float, baseline: Service | None = None) -> float:
    """Throughput with lending over that of a baseline, or of instances on their own; 0 where requests go unserved."""
    sent = mixed(setup, long_frac=long_frac)
    lending, alone = (
        tokens_per_s(x, sent) for x in (pooled(setup, NODE), baseline or pooled(setup, NODE, lends=False))
    )
    return lending / alone if alone else 0.0


def one_large(setup: Setup, devices: int) -> Service:
    """The other baseline: one instance of all devices."""
    pool = Pool(deployment=deployment(setup, model=MODEL, layout=f"tp{devices}"))
    return Service(pools=(pool,), policy="prefill-first", policy_knobs=KNOBS)


def longest_tokens(setup: Setup, instances: int, device: str = "") -> float:
    """The longest context of instances that lend each other their cache, as an estimate says it."""
    pool = deployment(setup, model=MODEL, device=device, layout=f"dp{instances}", max_model_len=MAX_MODEL_TOKENS)
    memory = memory_of(pool)
    assert not isinstance(memory, Infeasible)
    return room_of(pool, memory, SHORT_TOKENS, ANSWER_TOKENS, lends_cache=True).longest_context_tokens


TRIED = "the paper reports the longest context that it tried, not what its pool would hold"


MIX = (
    "the mix of lengths and its rate, which were not found: here every request fits an instance, so that those on "
    "their own serve all of them, and one large instance loses to its collectives alone"
)

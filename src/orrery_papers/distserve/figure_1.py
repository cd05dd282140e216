"""DistServe's first figure: one device that does both phases, one for each alone, and two for prompts beside one."""

from collections.abc import Callable, Iterator

import numpy as np

from orrery.evidence.paper_file import Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.layout import Deployment
from orrery.serving.capacity import highest_rate
from orrery.serving.metrics.latencies import latencies
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Role, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.setup import all_equal, deployment

COUNT = 600
"""Requests of a run: [unstated] num_requests."""

PLENTY = 16
"""Devices for prompts beside the one for answers, where answers alone are asked about: prompts never hold them up."""

TOLERANCE = 0.02

Met = Callable[[Simulated], bool]


def figure_1(setup: Setup, budget_tokens: int) -> Iterator[Prediction]:
    """Rates a device at which nine of ten requests have their first token, and their mean later one, in time."""
    d = deployment(setup, layout="tp1", max_num_batched_tokens=budget_tokens)
    first, later = _in_time(setup, "ttft"), _in_time(setup, "tpot")
    output = int(setup.number("output_tokens"))
    counts = tuple(int(setup.number(f"num_{side}_machines")) for side in ("prefill", "decode"))
    both = _rate(setup, Service(pools=(Pool(deployment=d),), policy="prefill-first"), (first, later), output)
    each = _rate(setup, _apart(d, counts), (first, later), output) / sum(counts)
    words = f"{counts[0]} GPUs for prompts, {counts[1]} for answers"
    yield Prediction(
        claim="figure-1-ratio",
        predicted=each / both if both else float("inf"),
        because=f"{each:.3g} against {both:.3g} requests/s a GPU, {words}",
        differs=EARLY,
    )
    yield Prediction(claim="figure-1-colocated", predicted=both, because="both phases on one GPU", differs=EARLY)
    yield Prediction(claim="figure-1-disaggregated", predicted=each, because=words, differs=EARLY)
    prompts = _rate(setup, Service(pools=(Pool(deployment=d),), policy="prefill-first"), (first,), 1)
    yield Prediction(claim="figure-1-prefill-only", predicted=prompts, because="answers of one token", differs=EARLY)
    answers = _rate(setup, _apart(d, (PLENTY, 1)), (later,), output)
    because = f"one GPU for answers behind {PLENTY} for prompts"
    yield Prediction(claim="figure-1-decode-only", predicted=answers, because=because, differs=EARLY)


EARLY = (
    "the engine: vLLM of early 2024 takes longer for a step than the releases whose host time was measured, and "
    "both of its limits are nearer to a lone request's times than they are here"
)


def _apart(d: Deployment, counts: tuple[int, ...]) -> Service:
    """GPUs for prompts and GPUs for answers in one machine."""
    roles: tuple[Role, ...] = ("prompts", "answers")
    pools = tuple(Pool(deployment=d, replicas=n, role=role) for n, role in zip(counts, roles, strict=True))
    return Service(pools=pools, policy="prefill-first", is_same_node=True, prompts_stream_first=True)


def _in_time(setup: Setup, what: str) -> Met:
    """Whether the stated percentile of the first token ("ttft") or of the mean later one ("tpot") is in time."""
    limit_s, percent = setup.number(f"slo_{what}_s"), 100.0 * setup.number("slo_attainment_frac")

    def is_met(run: Simulated) -> bool:
        done = latencies(run)
        seen_s = done.ttft_s if what == "ttft" else done.tpot_s
        return seen_s.size == done.num_sent and float(np.percentile(seen_s, percent)) <= limit_s

    return is_met


def _rate(setup: Setup, served: Service, limits: tuple[Met, ...], output_tokens: int) -> float:
    """The highest rate of equal requests that meets all limits."""
    prompt = int(setup.number("input_tokens"))
    return highest_rate(
        lambda rate: all_equal(prompt, output_tokens, rate, COUNT),
        lambda sent: simulate(served, sent),
        lambda run: all(is_met(run) for is_met in limits),
        1.0,
        8.0,
        TOLERANCE,
    )

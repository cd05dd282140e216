"""semi-PD: prompts and answers side by side on one device, against taking turns and against devices of their own."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from orrery.catalog.traces import load_trace
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible
from orrery.serving.capacity import highest_rate
from orrery.serving.metrics.latencies import latencies
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service, Split
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.objectives import attained_frac
from orrery_papers.shared.setup import all_equal, deployment, of_lengths

COUNT = 1000

DEVICE = "a100-sxm-80gb"
"""For the model whose platform was not found: [unstated] which_device."""

LONGEST_TOKENS = 10240
"""Where the set-up states no longest context: that of the artifact's script."""

TIGHT_RATIO = 7.5
"""The tight objectives: so many times what a lone request takes."""

SHARES = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Parts for answers that the controller may choose, and that are tried fixed: [unstated] shares."""

ENGINES = {"semi-pd": ("sglang", "0.4.4"), "vllm": ("vllm", "0")}
"""As the artifact and the comparison name them; vLLM before prompts and answers shared steps unasked."""


@dataclass(frozen=True, slots=True)
class Limits:
    """First token, and mean later token."""

    ttft_s: float
    tpot_s: float
    share: float


def traffic(setup: Setup, rate_per_s: float, count: int = COUNT) -> Requests:
    """Chats as they stand in the shipped trace, without those longer than the server's context."""
    chats, most = load_trace("chat"), setup.number("max_context_tokens", LONGEST_TOKENS)
    fits = np.flatnonzero(chats.input_tokens + chats.output_tokens <= most)[:count]
    return of_lengths(chats.input_tokens[fits], chats.output_tokens[fits], rate_per_s)


def side_by_side(setup: Setup, target_s: float) -> list[Service]:
    """semi-PD with every fixed share, and with a controller that holds steps of answers at ``target_s``."""
    splits = [Split(answers_fracs=(x,)) for x in SHARES] + [Split(answers_fracs=SHARES, target_s=target_s)]
    one = service(setup, "semi-pd")
    return [replace(one, split=x) for x in splits]


def service(setup: Setup, system: str) -> Service:
    """One of the systems; semi-PD in equal halves."""
    engine, version = ENGINES["semi-pd" if system == "semi-pd" else "vllm"]
    d = deployment(
        setup,
        device=setup.word("device") or DEVICE,
        engine=engine,
        version=version,
        utilization_frac=0.0 if system == "semi-pd" else 0.9,
    )
    if system == "semi-pd":
        return Service(pools=(Pool(deployment=d),), split=Split(), prefix_caching=False)
    if system == "apart":
        pools = (Pool(deployment=d, role="prompts"), Pool(deployment=d, role="answers"))
        return Service(pools=pools, policy="prefill-first", is_same_node=True, prompts_stream_first=True)
    return Service(pools=(Pool(deployment=d),), policy=system, prefix_caching=False)


def rate_per_device(setup: Setup, served: Service, limits: Limits, count: int = COUNT) -> float:
    """The highest rate a device with enough requests in time."""
    found = highest_rate(
        lambda rate: traffic(setup, rate, count),
        lambda sent: simulate(served, sent),
        lambda run: attained_frac(run, limits.ttft_s, limits.tpot_s) >= limits.share,
        2.0,
        16.0,
        0.03,
    )
    return found / served.num_devices


BASELINES = {
    "rate-vllm-splitfuse": "chunked-prefill",
    "rate-vllm": "prefill-first",
    "rate-distserve": "apart",
}

TOGETHER = (
    "the phases together: on one device here the two slow each other by what they share of the bandwidth, and a step "
    "of answers is so short that taking turns costs little; the longer prompts of LongBench, in the paper's mean, were "
    "not found"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Rates within the tight objectives, and mean latencies under load."""
    setup = paper.setups["llama-sharegpt"]
    limits = Limits(setup.number("slo_ttft_s"), setup.number("slo_tpot_s"), setup.number("slo_attainment_frac"))
    ours = max(rate_per_device(setup, x, limits) for x in side_by_side(setup, limits.tpot_s))
    ratios: list[float] = []
    for claim, system in BASELINES.items():
        theirs = rate_per_device(setup, service(setup, system), limits)
        ratios.append(ours / theirs)
        words = f"{ours:.3g} against {theirs:.3g} requests/s a GPU"
        yield Prediction(claim=claim, predicted=ratios[-1], because=words, differs=TOGETHER)
    mean = float(np.mean(ratios[:2]))
    yield Prediction(claim="rate-llama", predicted=mean, because="mean over the two vLLMs", differs=TOGETHER)
    found, words = faster(paper.setups["deepseek-v2-lite"])
    for claim in ("e2e-deepseek-v2-lite", "e2e-deepseek"):
        yield Prediction(claim=claim, predicted=found, because=f"DeepSeek-V2-Lite, {words}", differs=TOGETHER)


def faster(setup: Setup, count: int = COUNT) -> tuple[float, str]:
    """Mean latency of vLLM over ours, at the highest rate at which vLLM meets the tight objectives."""
    theirs = service(setup, "prefill-first")
    lone = simulate(theirs, all_equal(*_median(setup), 1.0, 1))
    if isinstance(lone, Infeasible):
        raise ValueError(f"{setup.name}: {lone}")
    alone = latencies(lone)
    limits = Limits(TIGHT_RATIO * float(alone.ttft_s[0]), TIGHT_RATIO * float(alone.tpot_s[0]), 0.9)
    rate = rate_per_device(setup, theirs, limits, count)
    sent = traffic(setup, rate, count)
    slow_s = _mean_latency_s(theirs, sent)
    quick_s = min(_mean_latency_s(x, sent) for x in side_by_side(setup, limits.tpot_s))
    return slow_s / quick_s, f"{slow_s:.3g} s against {quick_s:.3g} s at {rate:.3g} requests/s"


def _median(setup: Setup) -> tuple[int, int]:
    sent = traffic(setup, 1.0)
    return int(np.median(sent.input_tokens)), int(np.median(sent.output_tokens))


def _mean_latency_s(served: Service, sent: Requests) -> float:
    run = simulate(served, sent)
    return float("nan") if isinstance(run, Infeasible) else float(np.mean(latencies(run).e2el_s))

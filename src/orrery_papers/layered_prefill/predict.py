"""Layered prefill against chunked prefill on models with experts: first tokens, traffic of experts, energy."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from orrery.base.units import percent
from orrery.evidence.paper_file import Claim, Paper, Setup, get_paper
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible
from orrery.serving.capacity import highest_rate
from orrery.serving.metrics.latencies import latencies
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery.serving.simulation.world import Window
from orrery_papers.layered_prefill.expert_traffic import distinct_experts, expert_bytes
from orrery_papers.shared.objectives import attained_frac, first_token_s, gap_s, whole_s
from orrery_papers.shared.setup import all_equal, deployment, length_of, requests

COUNT = 300
"""Requests of a run, where the claim does not say."""

VERSION = "0.10.2"
"""Version of vLLM, whose host constants both systems get: the paper's own engine was not measured."""

FIRST_TOKEN_S = {"arXiv summarization": 10.0, "ShareGPT": 5.0}
"""The objective's first half: [unstated] slo_values."""

SPREAD_OF = {"arXiv summarization": "mistral-7b-arxiv", "ShareGPT": "mistral-7b-chat"}
"""Set-ups of another paper with quantiles of the same data sets: [unstated] lengths."""

EVERY_STEP = Window(end_s=float("inf"), rows=400_000)


@dataclass(frozen=True, slots=True)
class Seen:
    """A run, and what served it."""

    run: Simulated
    service: Service

    @property
    def tokens(self) -> float:
        """Prompt and answer tokens of the run."""
        return float(self.run.requests.input_tokens.sum() + self.run.requests.output_tokens.sum())

    @property
    def traffic_bytes(self) -> float:
        """Experts' weights read, over all devices."""
        is_layered = self.service.policy == "layered-prefill"
        return expert_bytes(self.run, self.service.pools[0].deployment, by_layers=is_layered)


READ: Mapping[str, Callable[[Seen], float]] = {
    "ttft_mean": lambda s: float(np.mean(latencies(s.run).ttft_s)),
    "ttft_p50": lambda s: first_token_s(s.run, 50.0),
    "ttft_p99": lambda s: first_token_s(s.run, 99.0),
    "tpot_mean": lambda s: float(np.mean(latencies(s.run).long_tpot_s)),
    "tpot_p50": lambda s: float(np.median(latencies(s.run).long_tpot_s)),
    "itl_p99": lambda s: gap_s(s.run, 99.0),
    "tbt_p99": lambda s: gap_s(s.run, 99.0),
    "tbt_mean": lambda s: s.run.gap_sum_s / float(s.run.gap_counts.sum()),
    "e2e_mean": lambda s: float(np.mean(latencies(s.run).e2el_s)),
    "e2e_p50": lambda s: whole_s(s.run, 50.0),
    "energy_per_token": lambda s: s.run.energy_j / s.tokens,
    "expert_traffic": lambda s: s.traffic_bytes,
    "expert_traffic_per_request": lambda s: s.traffic_bytes / s.run.requests.count,
}
"""Readers of a run's quantities, by the names of claims."""

SHORT = {"ttft": "ttft_mean", "e2e_latency": "e2e_mean"}
"""Reductions of these are reductions of the mean."""


def service(setup: Setup, *, layered: bool) -> Service:
    """The paper's system, or chunked prefill with its chunk as the budget of a step."""
    budget = "max_num_batched_tokens" if layered else "chunk_tokens"
    d = deployment(
        setup,
        version=VERSION,
        max_num_seqs=int(setup.number("max_num_seqs")),
        max_num_batched_tokens=int(setup.number(budget)),
    )
    return Service(
        pools=(Pool(deployment=d),), policy="layered-prefill" if layered else "chunked-prefill", prefix_caching=False
    )


def traffic(setup: Setup, rate_per_s: float, count: int = COUNT) -> Requests:
    """Requests with the stated means and the spread of the same data set elsewhere."""
    alike = get_paper("sarathi-serve").setups[SPREAD_OF[setup.word("dataset")]]
    most = setup.number("max_context_tokens")
    input, output = (length_of(setup, s, sigma=length_of(alike, s).sigma, most_tokens=most / 2) for s in SIDES)
    return requests(input, output, rate_per_s, count, most_tokens=most)


SIDES = ("input", "output")


def seen(setup: Setup, rate_per_s: float, count: int, *, layered: bool) -> Seen:
    """One run with every step logged."""
    served = service(setup, layered=layered)
    run = simulate(served, traffic(setup, rate_per_s, count), window=EVERY_STEP)
    if isinstance(run, Infeasible):
        raise ValueError(f"{setup.name}: {run}")
    return Seen(run=run, service=served)


class Bench:
    """Runs and capacities of one paper, each made once."""

    def __init__(self, paper: Paper) -> None:
        """Which rates stand for a data set: where chunked prefill is said to reach its limit."""
        self.stated = {c.setup.name: c.low for c in paper.claims if c.metric == "baseline_capacity"}
        self.text = {c.setup.word("model") for c in paper.claims if c.metric == "ttft_mean"}
        self.text |= {paper.setups[name].word("model") for name in self.stated}
        self.named = paper.setups
        self.runs, self.capacity = cache(self._run), cache(self._capacity)
        self.setups: dict[tuple[str, ...], Setup] = {}

    def rate(self, setup: Setup) -> float:
        """The claim's own rate, or that at which chunked prefill is said to reach its limit; for a model of which
        nothing is said, that at which it does so here."""
        if setup.word("model") not in self.text:
            return capacity(setup, layered=False)
        return setup.number("num_requests_per_s") or self.stated.get(setup.name, 0.0)

    def _capacity(self, name: str, layered: bool) -> float:
        return capacity(self.named[name], layered=layered)

    def at(self, setup: Setup, *, layered: bool) -> Seen:
        """The run of a set-up at its rate."""
        key = (setup.name, *(f"{k}={v.value}" for k, v in sorted(setup.inputs.items())))
        self.setups[key] = setup
        return self.runs(key, layered)

    def _run(self, key: tuple[str, ...], layered: bool) -> Seen:
        setup = self.setups[key]
        return seen(setup, self.rate(setup), int(setup.number("num_requests", COUNT)), layered=layered)

    def reduction(self, setup: Setup, metric: str) -> float:
        """1 - ours / chunked."""
        ours, theirs = (READ[metric](self.at(setup, layered=x)) for x in (True, False))
        return 1.0 - ours / theirs


def predict(paper: Paper) -> Iterator[Prediction]:
    """Every claim whose metric is read off a run; capacities; coverage; lone prompts."""
    bench = Bench(paper)
    for claim in paper.claims:
        if (found := _one(bench, claim)) is not None:
            yield found


def _one(bench: Bench, claim: Claim) -> Prediction | None:
    setup, metric = claim.setup, claim.metric
    if claim.missing:
        return None
    if metric.endswith("capacity"):
        ours = not metric.startswith("baseline")
        found = bench.capacity(setup.name, ours)
        return Prediction(claim=claim.id, predicted=found, because="90 % in time", differs=OBJECTIVES)
    if metric == "capacity_increase":
        gains = {name: bench.capacity(name, True) / bench.capacity(name, False) - 1.0 for name in bench.stated}
        words = ", ".join(f"{name} {percent(gain)}" for name, gain in gains.items())
        mean = float(np.mean(list(gains.values())))
        return Prediction(claim=claim.id, predicted=mean, because=f"mean of {words}", differs=OBJECTIVES)
    if metric == "baseline_prefill_energy_per_token":
        found = prompts_j_per_token(setup)
        return Prediction(claim=claim.id, predicted=found, because="prompts of the mean length alone", differs=POWER)
    if metric == "expert_coverage":
        tokens = setup.number("num_batch")
        d = service(setup, layered=False).pools[0].deployment
        share = float(distinct_experts(d, np.array([tokens]))[0]) / 128.0
        return Prediction(claim=claim.id, predicted=share, because="the routing steps are costed with", differs=ROUTING)
    if metric == "baseline_prefill_time":
        return Prediction(claim=claim.id, predicted=lone_prompt_s(setup), because="one prompt alone", differs=CHUNKS)
    if metric == "expert_traffic_increase":
        gain = 1.0 / (1.0 - bench.reduction(setup, "expert_traffic")) - 1.0
        return Prediction(claim=claim.id, predicted=gain, because="bytes of chunked over layered", differs=ROUTING)
    if not bench.rate(setup):
        return None
    if metric.endswith("_reduction"):
        name = metric.removesuffix("_reduction")
        found = bench.reduction(setup, SHORT.get(name, name))
    else:
        name = metric.removeprefix("baseline_")
        ours = not metric.startswith("baseline_")
        found = READ[name](bench.at(setup, layered=ours)) if name in READ else None
    if found is None:
        return None
    return Prediction(
        claim=claim.id, predicted=found, because=f"at {bench.rate(setup):.3g} requests/s", differs=_why(metric)
    )


ROUTING = (
    "what is counted: one device or both, chunks or all steps, is not written; and the paper's tokens touch fewer "
    "experts (coverage)"
)
OBJECTIVES = "the objectives, whose seconds were not found, and the speed of the engine (prompt-512, prompt-8192)"
CHUNKS = "the engine: vLLM's host time and kernels, where the paper ran its own"
QUEUE = (
    "the engine: the paper's steps take 1.4 to 1.8 times as long (prompt-512, prompt-8192), and waits grow faster than "
    "steps"
)
POWER = "the power of the devices between kernels, and the bytes of experts (see coverage)"


def _why(metric: str) -> str:
    return POWER if "energy" in metric else ROUTING if "traffic" in metric else QUEUE


def prompts_j_per_token(setup: Setup) -> float:
    """Energy of prompts of the mean length, one after another in chunks, over their tokens."""
    sent = all_equal(int(setup.number("input_mean_tokens")), 1, float("inf"), 8)
    run = simulate(service(setup, layered=False), sent)
    return float("nan") if isinstance(run, Infeasible) else run.energy_j / float(run.requests.input_tokens.sum())


def lone_prompt_s(setup: Setup) -> float:
    """A prompt alone, in chunks."""
    served = service(setup, layered=False)
    run = simulate(served, all_equal(int(setup.number("input_tokens")), 1, 1.0, 1))
    return float("nan") if isinstance(run, Infeasible) else float(run.first_token_s[0] - run.admitted_s[0])


def capacity(setup: Setup, *, layered: bool) -> float:
    """The highest rate with 90 % in time: a first token within what the data set gets, and the stated rule for gaps."""
    gap_limit_s, served = 5.0 * decode_step_s(setup), service(setup, layered=layered)
    limit_s, share = FIRST_TOKEN_S[setup.word("dataset")], setup.number("slo_attainment_frac")
    return highest_rate(
        lambda rate: traffic(setup, rate),
        lambda sent: simulate(served, sent),
        lambda run: attained_frac(run, limit_s, gap_limit_s) >= share,
        0.5,
        4.0,
        0.03,
    )


def decode_step_s(setup: Setup) -> float:
    """A step of 32 answers at 4096 tokens."""
    served = replace(service(setup, layered=False), policy="prefill-first")
    run = simulate(served, all_equal(4096, 100, float("inf"), 32))
    return float("nan") if isinstance(run, Infeasible) else gap_s(run, 50.0)

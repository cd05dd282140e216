"""Splitwise's clusters: machines that do both phases, or one each, and the highest rate within its nine limits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from orrery.catalog.traces import load_trace, stats
from orrery.evidence.paper_file import Paper, Setup
from orrery.execution.memory import Infeasible
from orrery.serving.capacity import highest_rate
from orrery.serving.metrics.latencies import latencies
from orrery.serving.requests import Floats, Requests
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Role, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.setup import Z_90, all_equal, deployment, length_of, requests

COUNT = 2500

A100, H100 = "a100-sxm-80gb", "h100-sxm"

MIXED: Mapping[str, float] = {"mixes": 1.0}
"""Whole prompts within the budget of a step, beside the answers: mixed continuous batching."""

A100_PER_H100_POWER = 70 / 40
"""Machines of equal power: [unstated] machine_power."""

PROMPT_SHARES = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65)
"""Parts of the budget that go to prompt machines: what is tried beside the stated numbers, as the paper does."""

PERCENTS, TIMES = (50, 90, 99), ("ttft", "tbt", "e2e")


def machine(setup: Setup, device: str, role: Role = "all", count: int = 1) -> Pool:
    """Pool of ``count`` machines of eight devices, each with the whole model."""
    d = deployment(
        setup,
        device=device,
        max_num_seqs=int(setup.number("max_num_seqs")),
        max_num_batched_tokens=int(setup.number("prefill_max_num_batched_tokens", 2048)),
    )
    return Pool(deployment=d, replicas=count, role=role)


def together(setup: Setup, device: str, count: int = 1) -> Service:
    """The baseline: every machine does both."""
    pool = machine(setup, device, count=count)
    return Service(pools=(pool,), policy="prefill-first", policy_knobs=MIXED)


def apart(setup: Setup, *, is_layerwise: bool = True) -> Service:
    """The stated numbers of prompt and token machines."""
    sides: tuple[tuple[str, Role], ...] = (("prefill", "prompts"), ("decode", "answers"))
    pools = tuple(
        machine(setup, setup.word(f"{side}_device"), role, int(setup.number(f"num_{side}_machines")))
        for side, role in sides
    )
    layers = pools[0].deployment.model.num_layers
    return Service(
        prompts_stream_first=True,
        pools=pools,
        policy="prefill-first",
        policy_knobs=MIXED,
        transfer_hidden_frac=1.0 - 1.0 / layers if is_layerwise else 0.0,
    )


def traffic(setup: Setup, rate_per_s: float, count: int = COUNT) -> Requests:
    """Lengths through the stated medians, with the spread of the published coding trace: [unstated] lengths."""
    known = stats(load_trace("code"))
    sigmas = {
        "input": np.log(known.input_p90_tokens / known.input_p50_tokens) / Z_90,
        "output": np.log(known.output_p90_tokens / known.output_p50_tokens) / Z_90,
    }
    most = {"input": 8192.0, "output": 2048.0}
    input, output = (length_of(setup, s, sigma=float(sigmas[s]), most_tokens=most[s]) for s in ("input", "output"))
    return requests(input, output, rate_per_s, count)


def times(run: Simulated) -> dict[str, Floats]:
    """First token, mean gap, and all, of each request in order."""
    done = latencies(run)
    return {"ttft": done.ttft_s, "tbt": done.tpot_s, "e2e": done.e2el_s}


def must(run: Simulated | Infeasible) -> Simulated:
    """A run that the set-up says is possible."""
    if isinstance(run, Infeasible):
        raise ValueError(f"the stated machines cannot serve the model: {run}")
    return run


def lone(setup: Setup) -> dict[str, Floats]:
    """A request of median lengths on an idle machine."""
    return times(must(simulate(together(setup, setup.word("device")), median(setup))))


def median(setup: Setup) -> Requests:
    """One request of the set-up's median lengths."""
    return all_equal(int(setup.number("input_p50_tokens")), int(setup.number("output_p50_tokens")), 1.0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The best numbers of prompt and token machines, their rate, and both as text."""

    mix: tuple[int, int]
    requests_per_s: float
    words: str


class Bench:
    """Clusters under the paper's objectives; every rate is searched once."""

    def __init__(self, paper: Paper, count: int = COUNT) -> None:
        """The paper's set-ups by name."""
        self.setups, self.count = paper.setups, count
        self.tuned, self.against = cache(self._tuned), cache(self.baseline)
        self.alone = cache(self._alone)

    def _alone(self, name: str) -> dict[str, Floats]:
        """Every request on an idle DGX-A100."""
        setup = self.setups[name]
        return times(must(simulate(together(setup, A100), traffic(setup, 1e-3, self.count))))

    def meets(self, setup: Setup, run: Simulated) -> bool:
        """All nine slowdowns, over the answers that have what is asked about."""
        if np.isnan(run.finish_s).any():
            return False
        seen, alone = times(run), self.alone(setup.name)
        for what, percent in product(TIMES, PERCENTS):
            has = alone[what] > 0.0
            slower = float(np.percentile(seen[what][has] / alone[what][has], percent))
            if slower > setup.number(f"slo_{what}_p{percent}_ratio"):
                return False
        return True

    def _rate(self, name: str, served: Service) -> float:
        """The highest rate at which the set-up's traffic meets all limits."""
        setup, size = self.setups[name], sum(p.replicas for p in served.pools)
        return highest_rate(
            lambda r: traffic(setup, r, self.count),
            lambda q: simulate(served, q),
            lambda run: self.meets(setup, run),
            0.1 * size,
            1.0 * size,
            0.06,
        )

    def baseline(self, name: str, device: str, machines: int) -> float:
        """Highest rate (requests/s) of ``machines`` machines that do both."""
        return self._rate(name, together(self.setups[name], device, machines))

    def stated(self, name: str) -> float:
        """The pools as they are stated."""
        return self._rate(name, apart(self.setups[name]))

    def _tuned(self, name: str, unit: str) -> Tuned:
        """The best mix of prompt and token machines for what the stated ones draw ("w") or cost ("usd")."""
        setup, served = self.setups[name], apart(self.setups[name])
        each = [self.weight(setup, side, unit) for side in ("prefill", "decode")]
        counts = (served.pools[0].replicas, served.pools[1].replicas)
        budget = counts[0] * each[0] + counts[1] * each[1]
        mixes = {counts}
        mixes |= {(max(1, int(f * budget / each[0])), max(1, int((1 - f) * budget / each[1]))) for f in PROMPT_SHARES}
        rates = {mix: self.mixed(name, mix) for mix in mixes}
        best = max(rates, key=lambda m: rates[m])
        words = f"{best[0]} + {best[1]} machines (the stated {counts[0]} + {counts[1]}: {rates[counts]:.3g})"
        return Tuned(mix=best, requests_per_s=rates[best], words=words)

    def mixed(self, name: str, mix: tuple[int, int]) -> float:
        """Highest rate (requests/s) of ``mix`` prompt and token machines of the set-up's kinds."""
        served = apart(self.setups[name])
        pools = tuple(replace(p, replicas=n) for p, n in zip(served.pools, mix, strict=True))
        return self._rate(name, replace(served, pools=pools))

    def lengths_of(self, name: str, other: str) -> str:
        """A set-up like the first one with the second one's requests; its name."""
        lengths = {k: v for k, v in self.setups[other].inputs.items() if k.endswith("_tokens")}
        setup = self.setups[name]
        like = replace(setup, name=f"{name}, {other}", inputs={**setup.inputs, **lengths})
        self.setups = {**self.setups, like.name: like}
        return like.name

    def weight(self, setup: Setup, side: str, unit: str) -> float:
        """Power of a machine in DGX-A100s, or its price."""
        is_new = setup.word(f"{side}_device") == H100
        if unit == "usd":
            return self.setups[f"iso-power-baseline-{'h100' if is_new else 'a100'}"].number("machine_usd_per_s")
        capped = setup.number("decode_power_frac", 1.0) if side == "decode" else 1.0
        return (A100_PER_H100_POWER if is_new else 1.0) * capped

    def over(self, name: str, unit: str, device: str, machines: int) -> tuple[float, str]:
        """The best mix over a cluster of one kind."""
        best, theirs = self.tuned(name, unit), self.against(name, device, machines)
        ours, words = best.requests_per_s, best.words
        ratio = ours / theirs if theirs else float("inf")
        return ratio, f"{ours:.3g} requests/s with {words} against {theirs:.3g} with {machines} {device}"

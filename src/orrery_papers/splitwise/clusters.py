"""Splitwise's clusters: machines that do both phases, or one each, and the highest rate within its nine limits."""

from collections.abc import Mapping
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
    return Service(
        prompts_stream_first=True,
        pools=pools,
        policy="prefill-first",
        policy_knobs=MIXED,
        is_layerwise=is_layerwise,
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


class Bench:
    """Clusters under the paper's objectives; every rate is searched once."""

    def __init__(self, paper: Paper, count: int = COUNT) -> None:
        """The paper's set-ups by name."""
        self.setups, self.count = paper.setups, count
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

    def stated(self, name: str) -> float:
        """The pools as they are stated."""
        return self._rate(name, apart(self.setups[name]))

"""Clusters of equal price or power as ``orrery plan --disaggregate`` sizes them, under the paper's nine limits."""

from collections.abc import Mapping
from functools import cached_property
from math import ceil
from typing import Any

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Setup
from orrery.planner.money import S_PER_HOUR
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.disaggregate import Disaggregated, plan_disaggregated
from orrery.scenario.simulate import simulate
from orrery_papers.shared.setup import layout_of
from orrery_papers.splitwise.clusters import A100, PERCENTS

METRICS: Mapping[str, str] = {"ttft": "ttft", "tbt": "tpot", "e2e": "e2el"}
MAX_TOKENS = 14_050 + 1_000
"""The longest prompt and answer of the traces, as the authors' generate_trace.py has them."""

LONE_REQUESTS_PER_S, LONE_REQUESTS = 1e-3, 2000
"""A request on an idle machine, again and again."""


class Sized:
    """The set-up's traffic and limits, asked for pools of given devices within a budget."""

    def __init__(self, setup: Setup, machine_usd_per_s: Mapping[str, float]) -> None:
        """Price a second of a machine, by device."""
        self.setup, self.usd_per_s = setup, machine_usd_per_s
        self.num_each = layout_of(setup.word("layout")).num_devices

    @property
    def queue(self) -> int:
        """Prompts that wait before a machine of the other pool is lent, a batch: [unstated] mixed_pool_threshold."""
        return ceil(self.setup.number("prefill_max_num_batched_tokens") / self.setup.number("input_mean_tokens"))

    @cached_property
    def served(self) -> dict[str, Any]:
        """Model, engine, batches and traffic of every machine."""
        setup = self.setup
        return {
            "model": setup.word("model"),
            "engine": "vllm",
            "engine_version": setup.word("engine_version"),
            "tp": self.num_each,
            "pp": 1,
            "policy": "chunked-prefill",
            "max_model_len": MAX_TOKENS,
            "max_num_seqs": int(setup.number("max_num_seqs")),
            "max_num_batched_tokens": int(setup.number("prefill_max_num_batched_tokens")),
            **{
                f"{side}_tokens{end}": int(setup.number(f"{side}_{kind}_tokens"))
                for side in ("input", "output")
                for end, kind in (("", "mean"), ("_std", "std"))
            },
        }

    @cached_property
    def limits(self) -> list[str]:
        """The nine slowdowns as limits: times the same percentile of lone requests on a DGX-A100."""
        alone = simulate(**self.served, device=A100, rate=LONE_REQUESTS_PER_S, num_requests=LONE_REQUESTS)
        if isinstance(alone, InfeasibleAnswer):
            raise OutOfRange(f"setup {self.setup.name}: {alone.infeasible}")
        return [
            f"p{percent}_{metric}:{1e3 * ratio * getattr(alone.summary, metric).percentile_s(float(percent)):.6g}"
            for what, metric in METRICS.items()
            for percent in PERCENTS
            if (ratio := self.setup.number(f"slo_{what}_p{percent}_ratio"))
        ]

    def plan(self, baseline: str, prefill: str, decode: str, budget: Mapping[str, Any]) -> Disaggregated:
        """Machines of the baseline's device for both phases, beside pools of the others."""
        prices = (f"{name}={S_PER_HOUR * usd / self.num_each:g}" for name, usd in self.usd_per_s.items())
        return plan_disaggregated(
            **self.served,
            device=baseline,
            prefill_device=prefill,
            decode_device=decode,
            slo=self.limits,
            device_usd_per_hour=",".join(prices),
            layerwise_transfer=True,
            max_prefill_queue=self.queue,
            **budget,
        )

    def for_dollars(self, count: int, baseline: str, prefill: str, decode: str, clocks: str = "1") -> Disaggregated:
        """Within the price of so many of the baseline's machines."""
        usd_per_hour = count * S_PER_HOUR * self.usd_per_s[baseline]
        return self.plan(
            baseline, prefill, decode, {"max_usd_per_hour": usd_per_hour * (1 + 1e-9), "clock_frac": clocks}
        )

    def for_watts(self, count: int, baseline: str, prefill: str, decode: str, clocks: str = "1") -> Disaggregated:
        """Within the rated draw of so many of the baseline's machines, hosts included."""
        device = get_device(baseline)
        watts = count * self.num_each * (device.power_limit_w + device.host_power_w)
        return self.plan(baseline, prefill, decode, {"power_budget_w": watts, "clock_frac": clocks})


def gain(found: Disaggregated) -> tuple[float, str]:
    """Rate of the best pools over that of machines for both phases, and both as text."""
    joint, pools = found.best("joint"), found.best("separate")
    if joint is None or pools is None:
        return 0.0, found.conclusion
    words = f"{pools.requests_per_s:.3g} requests/s with {pools.prefill} and {pools.decode} against "
    words += f"{joint.requests_per_s:.3g} with {joint.decode}; limited by {pools.limited_by} and {joint.limited_by}"
    return pools.requests_per_s / joint.requests_per_s, words

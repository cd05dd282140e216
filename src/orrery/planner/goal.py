"""What a plan is for: the objectives it must meet, the traffic it must carry, and what it should be best at."""

from dataclasses import dataclass, fields
from math import inf
from typing import Literal

Best = Literal["cost", "throughput"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objectives:
    """Limits on mean latencies, as the closed form knows means; percentiles take the simulator."""

    ttft_s: float = inf
    tpot_s: float = inf
    e2el_s: float = inf

    def limits(self) -> tuple[tuple[str, float], ...]:
        """(metric, limit) of every objective that was set."""
        return tuple((f.name, limit) for f in fields(self) if (limit := getattr(self, f.name)) < inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests as the planner sees them: how many a second (0 = as many as can be served) and how long."""

    input_tokens: float
    output_tokens: float
    request_rate_per_s: float = 0.0
    num_users: float = 0.0  # people who send, wait, think and send again, in place of a rate, which then bounds theirs
    think_s: float = 0.0
    input_tokens_std: float = 0.0
    output_tokens_std: float = 0.0
    longest_tokens: float = 0.0  # the longest request must fit in the cache; 0 = the mean one

    @property
    def load_text(self) -> str:
        """Load as text: users, or requests per second."""
        return f"{self.num_users:,.0f} users" if self.num_users else f"{self.request_rate_per_s:.3g} requests/s"

    @property
    def fitting_tokens(self) -> float:
        """Tokens of the request that the cache must hold at least."""
        return max(self.longest_tokens, self.input_tokens + self.output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The best plan: cheapest for the traffic, or most tokens a second and device, within the objectives."""

    objectives: Objectives
    traffic: Traffic
    max_devices: int
    best: Best = "cost"

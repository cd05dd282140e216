"""Traffic, as far as a closed form needs it: lengths, and how requests arrive."""

from dataclasses import dataclass
from typing import Literal

Mode = Literal["static", "offline", "closed", "open"]
"""static: one batch, start to end. offline: all requests at once. closed: a fixed number in flight. open: Poisson."""

REQUESTS_PER_SLOT = 10
"""A closed loop that does not say how many requests it ran is taken to run this many times its concurrency."""

FEWEST_REQUESTS = 100
"""And no fewer than these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Mean lengths with their standard deviations, and the one size that its mode needs."""

    mode: Mode
    input_tokens: float
    output_tokens: float
    input_tokens_std: float = 0.0
    output_tokens_std: float = 0.0
    batch_size: int = 0  # static
    concurrency: int = 0  # closed
    request_rate_per_s: float = 0.0  # open
    num_distinct_prompts: int = 0  # that requests repeat in turn (simulated runs: a prefix cache keeps them); 0 = all
    num_requests: int = 0  # offline, closed, open; 0 = see ``loop_requests``, or without end
    keeps_cache: bool = True  # static: False computes the whole context again for every token


def loop_requests(concurrency: int) -> int:
    """Requests of a closed loop that does not say how many: ten a client, and enough for a mean."""
    return max(REQUESTS_PER_SLOT * concurrency, FEWEST_REQUESTS)

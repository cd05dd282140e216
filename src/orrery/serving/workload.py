"""Traffic, as far as a closed form needs it: lengths, and how requests arrive."""

from dataclasses import dataclass
from typing import Literal

Mode = Literal["static", "offline", "closed", "open"]
"""static: one batch, start to end. offline: all requests at once. closed: a fixed number in flight. open: Poisson."""

Pool = Literal["both", "prefill", "decode"]
"""prefill: prompts are read, up to their first token. decode: requests come with their cache and that token."""

REQUESTS_PER_SLOT = 10
"""A closed loop that does not say how many requests it ran is taken to run this many times its concurrency."""

FEWEST_REQUESTS = 100
"""And no fewer than these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Mean lengths of prompts and outputs, with their standard deviations."""

    input_tokens: float
    output_tokens: float
    input_tokens_std: float = 0.0
    output_tokens_std: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(Lengths):
    """Traffic of one replica: lengths, and the one size that its mode needs."""

    mode: Mode
    batch_size: int = 0  # static
    concurrency: int = 0  # closed
    request_rate_per_s: float = 0.0  # open
    num_distinct_prompts: int = 0  # that requests repeat in turn (simulated runs: a prefix cache keeps them); 0 = all
    num_requests: int = 0  # offline, closed, open; 0 = see ``loop_requests``, or without end
    pool: Pool = "both"
    keeps_cache: bool = True  # static: False computes the whole context again for every token

    @property
    def read_tokens(self) -> float:
        """Prompt tokens of a request that are read here."""
        return 0.0 if self.pool == "decode" else self.input_tokens

    @property
    def made_tokens(self) -> float:
        """Answer tokens of a request that are made here."""
        return self.output_tokens - 1.0 if self.pool == "decode" else self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic(Lengths):
    """Traffic of a whole service: lengths, and requests per second (0 = as many as can be served) or users."""

    request_rate_per_s: float = 0.0
    num_users: float = 0.0  # people who send, wait, think and send again, in place of a rate, which then bounds theirs
    think_s: float = 0.0
    longest_tokens: float = 0.0  # the longest request must fit in the cache; 0 = the mean one

    @property
    def load_text(self) -> str:
        """Load as text: users, or requests per second."""
        return f"{self.num_users:,.0f} users" if self.num_users else f"{self.request_rate_per_s:.3g} requests/s"

    @property
    def fitting_tokens(self) -> float:
        """Tokens of the request that the cache must hold at least."""
        return max(self.longest_tokens, self.input_tokens + self.output_tokens)

    def open(self, request_rate_per_s: float) -> Workload:
        """Return a workload of requests of mean length at a rate."""
        return Workload(
            mode="open",
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            request_rate_per_s=request_rate_per_s,
        )

    def closed(self, concurrency: int, num_requests: int) -> Workload:
        """Return a workload of requests of mean length, a fixed number of them in flight."""
        return Workload(
            mode="closed",
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            concurrency=concurrency,
            num_requests=num_requests,
        )


def loop_requests(concurrency: int) -> int:
    """Requests of a closed loop that does not say how many: ten a client, and enough for a mean."""
    return max(REQUESTS_PER_SLOT * concurrency, FEWEST_REQUESTS)

"""What a pipeline of stages costs at a provider's prices, where some stages serve all samples of a question.

A stage that is shared is paid once a question, however many samples come after it; a prompt that is sent again is
paid as a cache read where the provider keeps it, and as plain input where not.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """A provider's prices."""

    input_usd_per_token: float
    output_usd_per_token: float
    cache_read_usd_per_token: float
    cache_write_usd_per_token: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What one question sends and gets in a stage: once, or in every sample; ``local_usd`` for what runs at home."""

    name: str
    is_shared: bool
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cache_read_tokens: float = 0.0
    cache_write_tokens: float = 0.0
    local_usd: float = 0.0

    def usd(self, rates: Rates, *, caches: bool = True) -> float:
        """One run of it; without a cache what would be read from it, or written to it, is plain input."""
        read, write = rates.cache_read_usd_per_token, rates.cache_write_usd_per_token
        if not caches:
            read = write = rates.input_usd_per_token
        return (
            self.input_tokens * rates.input_usd_per_token + self.output_tokens * rates.output_usd_per_token
            + self.cache_read_tokens * read + self.cache_write_tokens * write + self.local_usd
        )  # fmt: skip


def question_usd(stages: Sequence[Stage], rates: Rates, num_samples: int, *, caches: bool = True) -> float:
    """A question with so many samples."""
    return sum((1 if s.is_shared else num_samples) * s.usd(rates, caches=caches) for s in stages)

"""Cost of a question when thinking beforehand is shared by all questions about one context.

Online tokens are dearer than idle ones, as somebody waits for them. With q questions of which a share h profits::

    beforehand = thought / q + price x (h x short + (1 - h) x plain),     plain alone = price x plain
"""

from dataclasses import dataclass
from math import inf

from orrery.base.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepTimePass:
    """A context's thinking pass, what a question takes after it and without it, and how often it helps."""

    thought_tokens: float
    short_tokens: float  # of an answer that profits
    plain_tokens: float  # of an answer that does not
    online_price_ratio: float  # an online token over an idle one
    profiting_frac: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.profiting_frac <= 1.0 or self.online_price_ratio <= 0.0:
            raise ScenarioError(
                f"profiting_frac = {self.profiting_frac:g}, online_price_ratio = {self.online_price_ratio:g}; "
                "write a share of 0 to 1 and a price above 0."
            )

    @property
    def plain_cost_tokens(self) -> float:
        """A question without thinking beforehand, in idle tokens."""
        return self.online_price_ratio * self.plain_tokens

    @property
    def online_tokens(self) -> float:
        """Tokens that a question still takes on average."""
        return self.profiting_frac * self.short_tokens + (1.0 - self.profiting_frac) * self.plain_tokens

    def cost_tokens(self, num_questions: float) -> float:
        """A question with thinking beforehand, in idle tokens, where ``num_questions`` share it."""
        return self.thought_tokens / num_questions + self.online_price_ratio * self.online_tokens

    @property
    def even_questions(self) -> float:
        """From so many questions on a context, thinking beforehand is cheaper; infinite where it never is."""
        saved = self.plain_cost_tokens - self.online_price_ratio * self.online_tokens
        return self.thought_tokens / saved if saved > 0 else inf

"""Tokens that a step with guesses yields."""

from orrery.execution.speculation import Speculation, level_chances


def expected_tokens(speculation: Speculation) -> float:
    """Tokens that one checking step yields on average: 1 + the chances that level 1, 2, … are reached and hold."""
    total = reach = 1.0
    for chance in level_chances(speculation):
        reach *= chance
        total += reach
    return total

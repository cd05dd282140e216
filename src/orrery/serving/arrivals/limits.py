"""Bounds on the settings of a law of arrival; a value outside is refused with what to write."""

import math
from typing import Any

from orrery.base.errors import ScenarioError


def check(knob: str, got: Any, *, least: float, most: float = math.inf, write: str) -> None:
    """Refuse a value that is no number or lies outside [least, most]; ``write`` says what to write instead."""
    is_number = isinstance(got, int | float) and not isinstance(got, bool)
    if not is_number or not least <= got <= most:
        raise ScenarioError(f"arrivals: {knob}: got {got!r}; write {write}.")


TINY = 1e-6
"""The least value of a setting that must be above 0; smaller ones are slips, and overflow."""

"""Answers out of many calls, estimated by the same call as ``orrery estimate --reasoning``."""

from collections.abc import Mapping
from typing import Any

from orrery.base.errors import FactError
from orrery.scenario.answer_ways import Reasoned
from orrery.scenario.ask import Answer, estimate


def reasoned(reasoning: str, knobs: Mapping[str, Any], **settings: Any) -> Reasoned:
    """The answer's ways and studies; FactError where its deployment does not fit."""
    written = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in knobs.items()]
    found = estimate(reasoning=reasoning, reasoning_knob=written, **settings)
    if not isinstance(found, Answer) or found.reasoned is None:
        raise FactError(f"set-up: {found}; state one that fits.")
    return found.reasoned


def study(found: Reasoned, name: str) -> Any:
    """The study of that name."""
    return next(one for one in found.studies if one.name == name)

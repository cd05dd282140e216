"""Training set-ups of papers, answered by the same call as ``orrery train``."""

from typing import Any

from orrery.base.errors import FactError
from orrery.scenario.train import TrainAnswer, train


def trained(**settings: Any) -> TrainAnswer:
    """The answer of ``orrery train`` with these settings; FactError where the set-up does not fit its devices."""
    found = train(**settings)
    if not isinstance(found, TrainAnswer):
        raise FactError(f"set-up: {found}; state one that fits.")
    return found

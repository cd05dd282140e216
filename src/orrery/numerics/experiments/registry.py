"""Experiments by name."""

from functools import cache

from orrery.base.experiment import Experiment, experiments_in
from orrery.numerics.experiments import studies


@cache
def known_experiments() -> dict[str, Experiment]:
    """Every experiment of the ``studies`` folder, by name."""
    return experiments_in(studies)

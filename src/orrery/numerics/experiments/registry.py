"""Experiments by name."""

from functools import cache

from orrery.base.errors import UnknownName
from orrery.base.experiment import Experiment, experiments_in
from orrery.numerics.experiments import studies


@cache
def known_experiments() -> dict[str, Experiment]:
    """Every experiment of the ``studies`` folder, by name."""
    return experiments_in(studies)


def get_experiment(name: str) -> Experiment:
    """The experiment called ``name``; UnknownName carries the nearest ones."""
    known = known_experiments()
    if name not in known:
        raise UnknownName("experiment", name, known)
    return known[name]

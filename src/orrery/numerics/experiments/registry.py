"""Experiments by name."""

import pkgutil
from functools import cache
from importlib import import_module

from orrery.base.errors import UnknownName
from orrery.numerics.experiments import studies
from orrery.numerics.experiments.experiment import Experiment


@cache
def known_experiments() -> dict[str, Experiment]:
    """Every experiment of the ``studies`` folder, by name."""
    found = [import_module(f"{studies.__name__}.{m.name}").EXPERIMENT for m in pkgutil.iter_modules(studies.__path__)]
    return {e.name: e for e in sorted(found, key=lambda e: e.name)}


def get_experiment(name: str) -> Experiment:
    """The experiment called ``name``; UnknownName carries the nearest ones."""
    known = known_experiments()
    if name not in known:
        raise UnknownName("experiment", name, known)
    return known[name]

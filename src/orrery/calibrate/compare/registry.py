"""Every cause that is known: found because its file exists."""

import pkgutil
from functools import cache
from importlib import import_module

from orrery.calibrate.compare import causes
from orrery.calibrate.compare.cause import Cause


@cache
def known_causes() -> tuple[Cause, ...]:
    """All causes, by name."""
    modules = (import_module(f"{causes.__name__}.{m.name}") for m in pkgutil.iter_modules(causes.__path__))
    return tuple(sorted((m.CAUSE for m in modules), key=lambda c: c.name))

"""Local-update techniques by name."""

from functools import cache

from orrery.base.errors import UnknownName
from orrery.base.technique import Technique, discover
from orrery.training import techniques

SEAM = "training.local_updates"


@cache
def _found() -> dict[str, Technique]:
    return {t.name: t for t in discover(techniques) if t.seam == SEAM}


def get_local_updates(name: str) -> Technique:
    """The technique of that name; its ``rule`` takes a Replica and its ``knobs``."""
    if name not in _found():
        raise UnknownName("local update", name, _found())
    return _found()[name]

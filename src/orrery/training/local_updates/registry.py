"""Local-update techniques by name."""

from collections.abc import Mapping

from orrery.base.errors import UnknownName
from orrery.base.extension_points import techniques_at
from orrery.base.technique import Technique
from orrery.training.local_updates import techniques

SEAM = "training.local_updates"


def _found() -> Mapping[str, Technique]:
    return techniques_at(techniques, SEAM)


def get_local_updates(name: str) -> Technique:
    """The technique of that name; its ``rule`` takes a Replica and its ``knobs``."""
    if name not in _found():
        raise UnknownName("local update", name, _found())
    return _found()[name]

"""Schedules of federated clients, by name."""

from collections.abc import Mapping

from orrery.base.errors import UnknownName
from orrery.base.extension_points import techniques_at
from orrery.base.technique import Technique
from orrery.fleet.federated import techniques

SEAM = "fleet.federated"


def get_schedule(name: str) -> Technique:
    """The schedule of that name; its ``rule`` takes a Federation and its ``knobs`` and answers a History."""
    known: Mapping[str, Technique] = techniques_at(techniques, SEAM)
    if name not in known:
        raise UnknownName("federated schedule", name, known)
    return known[name]

"""Rules for lowering clocks, by name."""

from collections.abc import Mapping

from orrery.base.errors import UnknownName
from orrery.base.extension_points import techniques_at
from orrery.base.technique import Technique
from orrery.fleet.power import techniques

SEAM = "fleet.power_cap"


def get_capping(name: str) -> Technique:
    """The technique of that name; its ``rule`` takes a Reading and its ``knobs`` and answers Clocks."""
    known: Mapping[str, Technique] = techniques_at(techniques, SEAM)
    if name not in known:
        raise UnknownName("power cap", name, known)
    return known[name]

"""Compressors of messages, by name."""

from collections.abc import Mapping

from orrery.base.errors import UnknownName
from orrery.base.extension_points import techniques_at
from orrery.base.technique import Technique
from orrery.fleet.decentral import techniques

SEAM = "fleet.compressor"


def get_compressor(name: str) -> Technique:
    """The compressor of that name; its ``rule`` takes a vector, its ``knobs`` and a stream, and answers a Message."""
    known: Mapping[str, Technique] = techniques_at(techniques, SEAM)
    if name not in known:
        raise UnknownName("compressor", name, known)
    return known[name]

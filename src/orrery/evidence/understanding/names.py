"""Names that a reader may ask for: layers that papers are told apart by, and techniques that they may resemble."""

from collections.abc import Iterable

from orrery.base.errors import UnknownName
from orrery.evidence.understanding.weights import shipped


def check_layers(names: Iterable[str]) -> None:
    """Refuse a layer that no paper is ever put into."""
    for name in names:
        if name not in shipped().layers:
            raise UnknownName("layer", name, shipped().layers, "orrery papers list")


def check_techniques(names: Iterable[str]) -> None:
    """Refuse a technique that no paper is ever compared with."""
    for name in names:
        from orrery.evidence.understanding.techniques import described  # reads every technique file

        if name not in (known := [d.name for d in described()]):
            raise UnknownName("technique", name, known)

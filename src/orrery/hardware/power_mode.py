"""A power mode of a device: the facts that are other than the device's own when its owner sets it."""

from collections.abc import Mapping
from dataclasses import dataclass

from orrery.base.sources import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerMode:
    """A mode, with its own facts."""

    name: str
    facts: Mapping[str, Fact]

    def number(self, fact: str, otherwise: float) -> float:
        """The mode's own value, or the device's."""
        return float(self.facts[fact].value) if fact in self.facts else otherwise

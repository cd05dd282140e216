"""No cap: clocks stay full, and only the breaker's own brake is left."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.fleet.power.capping import Clocks, Reading


def rule(reading: Reading, knobs: NoKnobs) -> Clocks:
    """Full clocks, whatever is drawn."""
    del reading, knobs
    return Clocks()


TECHNIQUE = Technique(
    name="cap-none",
    word="none",
    extension_point="fleet.power_cap",
    rule=rule,
    gains="Nothing is ever slowed down on purpose.",
    costs="A row must be small enough that its peaks never reach the breaker, or the brake stops everybody.",
    claims=("polca-2023",),
)

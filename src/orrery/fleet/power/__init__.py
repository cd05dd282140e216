"""A row of servers behind one breaker: what they draw, how clocks are lowered by priority, how many fit."""

from orrery.base.extension_points import ExtensionPoint
from orrery.fleet.power import techniques

POWER_CAPS = ExtensionPoint(name="fleet.power_cap", folder=techniques, noun="power cap")

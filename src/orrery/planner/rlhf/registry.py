"""Ways to place the calls of an RLHF iteration."""

from orrery.base.extension_points import ExtensionPoint
from orrery.planner.rlhf import techniques

PLACEMENTS = ExtensionPoint(name="planner.rlhf", folder=techniques, noun="placement of calls")

"""Regions of a fleet: where its pools stand, where requests come from, and who is sent where."""

from orrery.base.extension_points import ExtensionPoint
from orrery.fleet.regions import techniques

REGION_ROUTERS = ExtensionPoint(name="fleet.region_router", folder=techniques, noun="router between regions")

"""Clients that train one model on data they keep: when each is heard, and what comes of it."""

from orrery.base.extension_points import ExtensionPoint
from orrery.fleet.federated import techniques

FEDERATED = ExtensionPoint(name="fleet.federated", folder=techniques, noun="federated schedule")

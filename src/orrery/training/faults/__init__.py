"""Failures of a whole run: how often, how they are noticed, what they cost, and what checkpoints save of it."""

from orrery.base.extension_points import ExtensionPoint
from orrery.training.faults import techniques

CHECKPOINTS = ExtensionPoint(name="training.checkpoint", folder=techniques, noun="checkpoint")

"""Data parallelism that meets less often: the techniques by name, and a replica as the training floor costs it."""

from orrery.base.extension_points import ExtensionPoint
from orrery.training.local_updates import techniques
from orrery.training.local_updates.from_job import replica_of

__all__ = ["LOCAL_UPDATES", "replica_of"]

LOCAL_UPDATES = ExtensionPoint(name="training.local_updates", folder=techniques, noun="local update")

"""Data parallelism that meets less often: the techniques by name, and a replica as the training floor costs it."""

from orrery.training.local_updates.from_job import replica_of
from orrery.training.local_updates.registry import get_local_updates

__all__ = ["get_local_updates", "replica_of"]

"""Which replicas take requests: those that are up, and not closed because fewer are wanted.

A closed replica finishes what it has. One that is lost keeps nothing, and comes back empty.
"""

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.serving.requests import Ints
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables import _kernel as tables


class ReplicaIndex:
    """A replica is one engine: each independent data-parallel rank is one; they are numbered pool after pool."""

    def __init__(self, service: Service, world: tables.SimulationState) -> None:
        lanes = world.lanes
        self.machine_of_lane: Ints = world.unit_machine[lanes[:, tables.UNIT]]
        self.pool_of: Ints = np.zeros(world.slowness.size, dtype=np.int64)  # of the service, by replica
        self.pool_of[self.machine_of_lane] = lanes[:, tables.DEPLOYMENT] // (2 if service.split else 1)
        self.is_up: NDArray[np.bool_] = np.ones(self.pool_of.size, dtype=np.bool_)
        self._targets: dict[int, int] = {}  # by pool: the most replicas that take requests

    def check(self, replica: int) -> None:
        """Refuse a replica that is not there."""
        if not 0 <= replica < self.pool_of.size:
            raise ScenarioError(f"replica: there is no {replica}; write 0 to {self.pool_of.size - 1}.")

    def want(self, count: int, pool: int) -> None:
        """Only the first ``count`` replicas of a pool that are up take new requests."""
        size = int((self.pool_of == pool).sum())
        if not 0 <= count <= size:
            raise ScenarioError(f"replicas: got {count} for pool {pool}, which has {size}; write 0 to that many.")
        self._targets[pool] = count

    def opened(self, world: tables.SimulationState) -> tables.SimulationState:
        """The tables with the lanes that new requests, and those with a computed prompt, may go to."""
        takes = self.is_up.copy()
        for pool, count in self._targets.items():
            mine = self.pool_of == pool
            takes[mine] &= np.cumsum(self.is_up[mine]) <= count
        is_open, role = takes[self.machine_of_lane], world.lanes[:, tables.ROLE]
        return world._replace(
            entry=np.flatnonzero(is_open & (role != tables.ANSWERS)),
            exit=np.flatnonzero(is_open & (role != tables.PROMPTS)),
        )

"""From the loop's tables to what every replica is doing."""

import numpy as np

from orrery.serving.live.replica_index import ReplicaIndex
from orrery.serving.live.result import Snapshot
from orrery.serving.requests import Floats, Ints
from orrery.serving.simulation.tables import _kernel as tables


def snapshot_of(world: tables.SimulationState, doors: ReplicaIndex) -> Snapshot:
    """Lanes and pools summed by the replica that they belong to."""
    lanes, tally, memory, machine = world.lanes, world.tally, world.memory, doors.machine_of_lane
    pools, first = np.unique(lanes[:, tables.POOL], return_index=True)

    def total(values: Ints, of: Ints = machine) -> Floats:
        return np.bincount(of, weights=values, minlength=doors.is_up.size).astype(np.float64)

    def count(values: Ints) -> Ints:
        return total(values).astype(np.int64)

    used = (memory.capacity - memory.free - memory.evictable)[pools]
    return Snapshot(
        is_up=doors.is_up.astype(np.int64),
        running=count(lanes[:, [tables.NUM_DECODING, tables.NUM_PROMPTS, tables.RESERVED]].sum(axis=1)),
        waiting=count(lanes[:, tables.NUM_WAITING]),
        cache_frac=total(used, machine[first]) / total(memory.capacity[pools], machine[first]),
        steps=count(tally[:, tables.T_STEPS]),
        prompt_tokens=count(tally[:, tables.T_PROMPTED]),
        answer_tokens=count(tally[:, tables.T_ANSWERED]),
        preemptions=count(tally[:, tables.T_PREEMPTED]),
        queried_tokens=count(tally[:, tables.T_QUERIED]),
        hit_tokens=count(tally[:, tables.T_HIT]),
    )


def adapters_now(world: tables.SimulationState, doors: ReplicaIndex) -> Ints:
    """(engine, adapter, 1 where it is in a batch, 0 where it waits) of every unfinished request that chose one."""
    req = world.req
    status = req[:, tables.STATUS]
    there = (status > tables.TO_COME) & (status < tables.DONE) & (req[:, tables.ADAPTER] >= 0)
    engine = doors.machine_of_lane[req[there, tables.LANE]]
    return np.stack([engine, req[there, tables.ADAPTER], status[there] != tables.WAITING], axis=1)

"""Generation beside training: engines write one batch while the trainer learns from an earlier one.

A batch that takes G seconds to write and T seconds to learn from gives a period of the longer of the two. Its weights
may be K updates behind the one that trains it, so that G + T fit into K + 1 periods: with K = 0 one follows the other.
"""

from collections.abc import Iterator
from dataclasses import replace

from orrery.execution.memory import Infeasible
from orrery.planner.rlhf.dataflow import RlhfJob
from orrery.planner.rlhf.mesh import Mesh, mesh_sizes
from orrery.planner.rlhf.plan import Evaluator, Placed, Plan, Turn
from orrery.planner.rlhf.search import search, space_of
from orrery.planner.rlhf.ways import CallPlacement, cuts, generate_ways


def asynchronous(job: RlhfJob, max_staleness: int, num_proposals: int, seed: int) -> Plan | Infeasible:
    """The best split of the devices: engines at their fastest on the last ones, all other calls searched on the first.

    Engines hold weights of their own, which are brought to them before every batch.
    """
    found = [_split(job, engines, max_staleness, num_proposals, seed) for engines in splits(job)]
    plans = [p for p in found if isinstance(p, Plan)]
    if plans:
        return min(plans, key=lambda p: p.time_s)
    if found:
        return min((p for p in found if isinstance(p, Infeasible)), key=lambda p: p.need)
    return Infeasible(
        what="engines beside a trainer",
        need=2.0,
        have=float(job.cluster.num_devices),
        unit="devices",
        smallest_change="Use two devices or more.",
    )


def splits(job: RlhfJob) -> Iterator[int]:
    """Devices that generate: powers of two, and what powers of two leave."""
    sizes = mesh_sizes(job.cluster)
    n = job.cluster.num_devices
    yield from sorted({engines for size in sizes for engines in (size, n - size) if 0 < engines < n})


def period_s(generate_s: float, rest_s: float, max_staleness: int) -> float:
    """Seconds from one update to the next."""
    return max(generate_s, rest_s, (generate_s + rest_s) / (max_staleness + 1))


def _split(job: RlhfJob, engines: int, max_staleness: int, num_proposals: int, seed: int) -> Plan | Infeasible:
    generate, *others = job.calls
    rest = replace(
        job,
        cluster=replace(job.cluster, num_devices=job.cluster.num_devices - engines),
        calls=tuple(replace(c, needs=tuple(n for n in c.needs if n != generate.name)) for c in others),
    )
    way = _engines(job, generate.role, engines)
    space = space_of(rest)
    found = space if isinstance(space, Infeasible) else search(space, num_proposals=num_proposals, seed=seed)
    if isinstance(found, Infeasible) or isinstance(way, Infeasible):
        return way if isinstance(way, Infeasible) else found
    mesh = Mesh(first=job.cluster.num_devices - engines, num_devices=way.num_devices)
    placed = (Placed(mesh=mesh, way=way), *found.placed)
    moved_s = Evaluator(job).moved_s(placed, 0)
    writes = Turn(call=generate.name, start_s=0.0, moved_s=moved_s, end_s=moved_s + way.time_s)
    return Plan(
        placed=placed,
        turns=(writes, *found.turns),
        time_s=period_s(writes.end_s, found.time_s, max_staleness),
        memory_bytes=max(way.peak_bytes, found.memory_bytes),
        capacity_bytes=job.room_bytes,
    )


def _engines(job: RlhfJob, role: str, num_devices: int) -> CallPlacement | Infeasible:
    """The fastest engines on so many devices; none of them need divide the batch."""
    tried = generate_ways(job, role, list(cuts(job, role, [num_devices])), is_even=False)
    fitting = [way for way in tried if way.peak_bytes <= job.room_bytes]
    if fitting:
        return min(fitting, key=lambda way: way.time_s)
    return Infeasible(
        what=f"engines on {num_devices} devices",
        need=min((way.peak_bytes for way in tried), default=float("inf")),
        have=job.room_bytes,
        unit="bytes",
        smallest_change="Let more devices generate.",
    )

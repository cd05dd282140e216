"""Search of plans: a Markov chain over assignments (Metropolis-Hastings), cooled down. [mei-2024], [metropolis-1953]

A state places every call. A proposal draws one call and gives it a new mesh and way: the size, then the position, then
the way, each evenly. A better plan is taken, a worse one with probability exp(-(cost' - cost) / temperature). Plans
that do not fit cost more the more they lack, so the chain may cross them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from orrery.base.units import text
from orrery.engine.streams import stream
from orrery.execution.memory import Infeasible
from orrery.planner.rlhf.dataflow import RlhfJob
from orrery.planner.rlhf.mesh import Mesh, mesh_sizes, meshes
from orrery.planner.rlhf.plan import Evaluator, Placed, Plan
from orrery.planner.rlhf.ways import CallPlacement, all_ways, worth_having

OVERFULL_RATIO = 10.0
"""How much a plan's cost rises for each time its fullest device overflows; only the chain sees it."""

FIRST_FRAC, LAST_FRAC = 0.1, 0.001
"""Temperature at the start and at the end, as a share of the first plan's time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Space:
    """Meshes and ways of every call, in the order of the job's calls."""

    job: RlhfJob
    ways: tuple[dict[int, tuple[CallPlacement, ...]], ...]

    @property
    def num_options(self) -> tuple[int, ...]:
        """Placements of each call; their product is the number of assignments."""
        n = self.job.cluster.num_devices
        return tuple(sum(n // size * len(found) for size, found in by_size.items()) for by_size in self.ways)

    def options(self, call: int) -> list[Placed]:
        """Every placement of a call."""
        return [
            Placed(mesh=mesh, way=way)
            for size, found in self.ways[call].items()
            for mesh in meshes(self.job.cluster, size)
            for way in found
        ]


def space_of(job: RlhfJob, sizes: Iterable[int] = ()) -> Space | Infeasible:
    """Every way of every call, costed; or what keeps a call from running anywhere."""
    chosen = tuple(sizes) or mesh_sizes(job.cluster)
    known: dict[tuple[str, str, str], dict[int, tuple[CallPlacement, ...]]] = {}
    found: list[dict[int, tuple[CallPlacement, ...]]] = []
    for call in job.calls:
        key = job.models[call.role].name, call.kind, call.role
        if key not in known:
            tried = all_ways(job, call, chosen)
            known[key] = worth_having(job, tried)
            if not known[key]:
                return _too_large(job, call.name, min((w.peak_bytes for w in tried), default=math.inf))
        found.append(known[key])
    return Space(job=job, ways=tuple(found))


def _too_large(job: RlhfJob, call: str, need: float) -> Infeasible:
    have = job.room_bytes
    return Infeasible(
        what=f"{call} on {job.cluster.num_devices} x {job.cluster.device.name}",
        need=need,
        have=have,
        unit="bytes",
        smallest_change=f"No cut fits into {text(have, 'bytes')} per device; use more devices or a smaller model.",
    )


def search(
    space: Space, *, num_proposals: int = 6000, seed: int = 0, starts: Sequence[Sequence[Placed]] = ()
) -> Plan | Infeasible:
    """The best plan that fits, of one chain from every start (default: each call at its fastest)."""
    evaluator = Evaluator(space.job)
    best: Plan | None = None
    for number, start in enumerate([greedy(space), *starts]):
        found = _chain(space, evaluator, list(start), num_proposals, seed, number)
        if found and (best is None or found.time_s < best.time_s):
            best = found
    return best if best else _nothing_fits(space, evaluator)


def greedy(space: Space) -> list[Placed]:
    """Every call at its fastest, as if it were alone: where the paper's chain starts."""
    out: list[Placed] = []
    for by_size in space.ways:
        way = min((w for found in by_size.values() for w in found), key=lambda w: w.time_s)
        out.append(Placed(mesh=Mesh(first=0, num_devices=way.num_devices), way=way))
    return out


def _chain(
    space: Space, evaluator: Evaluator, placed: list[Placed], num_proposals: int, seed: int, number: int
) -> Plan | None:
    draws = stream(seed, f"rlhf/chain/{number}").random((num_proposals, 5))
    cost, fits = _cost(evaluator, placed)
    best, best_s = (list(placed), cost) if fits else (None, math.inf)
    hot = FIRST_FRAC * cost
    cool = (LAST_FRAC / FIRST_FRAC) ** (1.0 / max(num_proposals, 1))
    sizes = [tuple(by_size) for by_size in space.ways]
    num_devices = space.job.cluster.num_devices
    for step, (a, b, c, d, e) in enumerate(draws.tolist()):
        call = int(a * len(placed))
        size = sizes[call][int(b * len(sizes[call]))]
        first = int(c * (num_devices // size)) * size
        choices = space.ways[call][size]
        previous = placed[call]
        placed[call] = Placed(mesh=Mesh(first=first, num_devices=size), way=choices[int(d * len(choices))])
        new, fits = _cost(evaluator, placed)
        if new <= cost or e < math.exp(-(new - cost) / (hot * cool**step)):
            cost = new
            if fits and new < best_s:
                best, best_s = list(placed), new
        else:
            placed[call] = previous
    return evaluator.plan(best) if best else None


def _cost(evaluator: Evaluator, placed: list[Placed]) -> tuple[float, bool]:
    time_s = evaluator.time_s(placed)
    over = evaluator.memory_bytes(placed) / evaluator.capacity_bytes - 1.0
    return time_s * (1.0 + OVERFULL_RATIO * max(over, 0.0)), over <= 0.0


def _nothing_fits(space: Space, evaluator: Evaluator) -> Infeasible:
    need = evaluator.memory_bytes(_smallest(space, lambda w: w.peak_bytes))
    return Infeasible(
        what=f"RLHF of {len(space.ways)} calls on {space.job.cluster.num_devices} devices",
        need=need,
        have=evaluator.capacity_bytes,
        unit="bytes",
        smallest_change="Use more devices, or fewer or smaller models.",
    )


def _smallest(space: Space, size: Callable[[CallPlacement], float]) -> list[Placed]:
    """Every call where it takes the least of each device."""
    out: list[Placed] = []
    for by_size in space.ways:
        way = min((w for found in by_size.values() for w in found), key=size)
        out.append(Placed(mesh=Mesh(first=0, num_devices=way.num_devices), way=way))
    return out

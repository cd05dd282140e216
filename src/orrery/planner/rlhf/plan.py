"""A plan: where and how every call runs; when each starts and ends, and what every device holds.

Calls whose meshes share a device run one after the other, others side by side as soon as what they need is there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.hardware.cluster import Cluster
from orrery.planner.rlhf.dataflow import Call, RlhfJob
from orrery.planner.rlhf.mesh import Mesh
from orrery.planner.rlhf.reallocation import Place, reallocation_s
from orrery.planner.rlhf.ways import CallPlacement


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A call's mesh and way."""

    mesh: Mesh
    way: CallPlacement

    @property
    def place(self) -> Place:
        """Settings that determine which parameters each device holds."""
        return Place(mesh=self.mesh, tp=self.way.tp, pp=self.way.pp, dp=self.way.dp)

    def __str__(self) -> str:
        return f"{self.way} on {self.mesh}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One call in the timeline; parameters that have to move first do so before ``start_s`` + ``moved_s``."""

    call: str
    start_s: float
    moved_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Every call placed, and what comes of it."""

    placed: tuple[Placed, ...]  # in the order of the job's calls
    turns: tuple[Turn, ...]  # in the same order
    time_s: float  # of one iteration
    memory_bytes: float  # of the fullest device
    capacity_bytes: float

    @property
    def fits(self) -> bool:
        """Whether every device holds what is asked of it."""
        return self.memory_bytes <= self.capacity_bytes

    @property
    def moved_s(self) -> float:
        """Seconds in which calls wait for weights that come from where they are trained."""
        return sum(turn.moved_s for turn in self.turns)


class Evaluator:
    """Times and memory of plans of one job; parameter movements are worked out once for each pair of places."""

    def __init__(self, job: RlhfJob) -> None:
        self.job = job
        self.calls = job.calls
        names = {c.name: i for i, c in enumerate(job.calls)}
        self.needs = [[names[n] for n in c.needs] for c in job.calls]
        home = {c.role: i for i, c in enumerate(job.calls) if c.kind == "train"}
        self.home = [home.get(c.role, -1) if c.kind != "train" else -1 for c in job.calls]
        # What travels is 16-bit weights, whatever the optimizer keeps beside them.
        self.bytes = [2.0 * job.models[c.role].num_parameters for c in job.calls]
        self.capacity_bytes = job.room_bytes
        self._moves: dict[tuple[float, Place, Place], float] = {}

    def plan(self, placed: Sequence[Placed]) -> Plan:
        """The timeline and the memory of one assignment."""
        turns = self.turns(placed)
        return Plan(
            placed=tuple(placed),
            turns=turns,
            time_s=max(t.end_s for t in turns),
            memory_bytes=self.memory_bytes(placed),
            capacity_bytes=self.capacity_bytes,
        )

    def turns(self, placed: Sequence[Placed]) -> tuple[Turn, ...]:
        """When each call starts and ends."""
        return tuple(
            Turn(call=call.name, start_s=start_s, moved_s=moved_s, end_s=end_s)
            for call, start_s, moved_s, end_s in zip(self.calls, *self._moments(placed), strict=True)
        )

    def time_s(self, placed: Sequence[Placed]) -> float:
        """When the last call ends."""
        return max(self._moments(placed)[2])

    def _moments(self, placed: Sequence[Placed]) -> tuple[list[float], list[float], list[float]]:
        """Start, movement of parameters and end of each call (s): of those whose needs are met, the one that can start
        first goes on; ties go by the job's order."""
        size = len(placed)
        start, end, moved = [0.0] * size, [-1.0] * size, [0.0] * size
        free = [0.0] * size  # when the last call that shares a device with this one ends
        waiting = list(range(size))
        while waiting:
            best, best_s = -1, float("inf")
            for i in waiting:
                ready_s = free[i]
                for n in self.needs[i]:
                    ready_s = max(ready_s, end[n]) if end[n] >= 0.0 else float("inf")
                if ready_s < best_s:
                    best, best_s = i, ready_s
            moved[best] = self.moved_s(placed, best)
            start[best], end[best] = best_s, best_s + moved[best] + placed[best].way.time_s
            waiting.remove(best)
            for i in waiting:
                if placed[i].mesh.overlaps(placed[best].mesh):
                    free[i] = max(free[i], end[best])
        return start, moved, end

    def moved_s(self, placed: Sequence[Placed], call: int) -> float:
        """Seconds in which a call's parameters come from where their model is trained; the senders are not held up."""
        home = self.home[call]
        if home < 0 or placed[home].way.sharding == "zero3" or placed[call].way.sharding == "zero3":
            return (
                0.0
                if home < 0 or placed[home].way.sharding == placed[call].way.sharding
                else self._gathered(placed[home], placed[call], call)
            )
        key = self.bytes[call], placed[home].place, placed[call].place
        if key not in self._moves:
            self._moves[key] = reallocation_s(self.job.cluster, *key)
        return self._moves[key]

    def _gathered(self, home: Placed, target: Placed, call: int) -> float:
        """From or to shards of single parameters: every device receives all that its own cut holds."""
        share = 1.0 if target.way.sharding == "zero3" else target.way.dp
        received = self.bytes[call] * share / target.way.num_devices
        is_inside = max(home.mesh.end, target.mesh.end) <= self.job.cluster.devices_per_node
        device = self.job.cluster.device
        return received / (device.scaleup if is_inside else device.scaleout).each_way_bytes_per_s

    def memory_bytes(self, placed: Sequence[Placed]) -> float:
        """The fullest device: what all its calls keep, and the most that one of them needs while it runs.

        Meshes hold one another or are disjoint, so the fullest device is the first one of some mesh.
        """
        most = 0.0
        for at in {p.mesh.first for p in placed}:
            resident = busiest = 0.0
            for i, p in enumerate(placed):
                if p.mesh.first <= at < p.mesh.end:
                    resident += p.way.resident_bytes
                    home = self.home[i]
                    shared = home >= 0 and placed[home].mesh == p.mesh and placed[home].way.cut == p.way.cut
                    busiest = max(busiest, p.way.work_bytes + (0.0 if shared else p.way.weights_bytes))
            most = max(most, resident + busiest)
        return most


def describe(calls: Sequence[Call], plan: Plan, cluster: Cluster) -> list[str]:
    """One line a call: name, mesh, way, start and end."""
    width = max(len(c.name) for c in calls)
    return [
        f"{c.name:{width}}  nodes {p.mesh.first / cluster.devices_per_node:g}-"
        f"{p.mesh.end / cluster.devices_per_node:g}  {p.way}  {t.start_s:.2f} s + {t.moved_s:.2f} s to {t.end_s:.2f} s"
        for c, p, t in zip(calls, plan.placed, plan.turns, strict=True)
    ]

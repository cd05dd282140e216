"""Steps by speed: each client gets as many local steps as let it arrive together with others, as a group.

The fastest client without a group opens one with ``num_most`` steps. Every other, fastest first, joins the group in
which it can take the most steps between ``num_least`` and ``num_most`` and still arrive in time. Where none has room
it opens one of its own, timed so that the fastest member of an earlier group can join it after its next turn. A group
is taken in as one when its last member arrives.

Clients of equal speed are one group whose rounds are those of synchronous averaging. Where the slowest takes no more
than num_most / num_least times the fastest's time, all are one group that is never stale, and clients together take
as many steps a second as if nobody waited: the slowest's time over the harmonic mean of all times more than in rounds
that wait.
"""

import heapq
from dataclasses import dataclass, field

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.engine.streams import stream
from orrery.fleet.federated.federation import Federation, History, staleness_weight
from orrery.training.small.data import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class CompassKnobs:
    """Fewest and most local steps of a turn, and how fast an update's weight falls with its age."""

    num_least: int = 20
    num_most: int = 100
    age_power_ratio: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "num_least", 1, 100_000)
        check_range(self, "num_most", self.num_least, 100_000)


@dataclass(slots=True, kw_only=True, eq=False)
class _Group:
    """Clients that will arrive together: when, the fastest's step, how many are still away, and who came with what."""

    due_s: float
    fastest_s: float
    num_away: int = 0
    arrived: list[tuple[int, int, Floats]] = field(default_factory=list[tuple[int, int, Floats]])


def rule(run: Federation, knobs: CompassKnobs) -> History:
    """w <- w + sum over a group of (1 + age)^-power x (w_client - its start) / clients. [fedcompass-2024]"""
    weights, draw, version = run.start(), stream(run.seed, "federated/steps"), 0
    groups: list[_Group] = []
    turns: list[tuple[float, int, int]] = []  # end, client, steps
    begun = dict[int, tuple[_Group, int, Floats]]()
    times, accuracies = [0.0], [run.accuracy(weights)]
    homecoming, now_s = list(range(run.num_clients)), 0.0
    while True:
        for client in sorted(homecoming, key=lambda i: run.step_s[i]):
            num_steps, group = _turn(groups, run, knobs, client, now_s)
            group.num_away += 1
            begun[client] = (group, version, weights)
            heapq.heappush(turns, (now_s + num_steps * run.step_s[client], client, num_steps))
        now_s, client, num_steps = heapq.heappop(turns)
        if now_s > run.run_s:
            return History(time_s=np.array(times), accuracy_frac=np.array(accuracies))
        group, since, start = begun[client]
        group.num_away -= 1
        group.arrived.append((client, since, run.trained(client, start, num_steps, draw) - start))
        homecoming = []
        if group.num_away == 0:
            groups.remove(group)
            ages = [staleness_weight(version - since, knobs.age_power_ratio) for _, since, _ in group.arrived]
            for weight, (_, _, update) in zip(ages, group.arrived, strict=True):
                weights = weights + weight * update / run.num_clients
            version, homecoming = version + 1, [member for member, _, _ in group.arrived]
            times.append(now_s)
            accuracies.append(run.accuracy(weights))


def _turn(groups: list[_Group], run: Federation, knobs: CompassKnobs, client: int, now_s: float) -> tuple[int, _Group]:
    """Steps that a client takes next, and the group with which it will arrive."""
    step_s = run.step_s[client]
    fitting = [(int((g.due_s - now_s) / step_s + 1e-9), i) for i, g in enumerate(groups) if g.num_away]
    joinable = [(steps, i) for steps, i in fitting if knobs.num_least <= steps <= knobs.num_most]
    if joinable:
        steps, found = max(joinable)
        group = groups[found]
        group.fastest_s = min(group.fastest_s, step_s)
        return steps, group
    steps = _opening_steps(groups, knobs, step_s, now_s)
    opened = _Group(due_s=now_s + steps * step_s, fastest_s=step_s)
    groups.append(opened)
    return steps, opened


def _opening_steps(groups: list[_Group], knobs: CompassKnobs, step_s: float, now_s: float) -> int:
    """Steps of a client that opens a group: until a group's fastest, once it is back, has taken its most steps; as many
    as there may be where no group is so near."""
    back_s = [g.due_s + knobs.num_most * g.fastest_s - now_s for g in groups if g.num_away]
    steps = [count for each in back_s if (count := int(each / step_s + 1e-9)) <= knobs.num_most]
    return max(max(steps), knobs.num_least) if steps else knobs.num_most


TECHNIQUE = Technique(
    name="federated-compass",
    extension_point="fleet.federated",
    rule=rule,
    knobs=CompassKnobs,
    gains="Nobody waits long and little is stale: fast clients do more steps and arrive with slow ones.",
    costs="Clients take unequal numbers of steps, so the model leans to the fast ones; speeds must be known.",
    claims=("fedcompass-2024",),
)

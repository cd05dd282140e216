"""The draw of replicas, read every so often at every limit above them, and clocks that rules lower near these.

A reading is the mean draw since the one before: idle watts of what runs, the machines around it, and the joules that
steps have spent above idle. A rule (``fleet.power_cap``) answers it with the clocks of low and of high priority, which
come into force after a delay; a replica in a rack in a row runs at the lowest of what these ask for. At a part of its
clock a step's arithmetic takes longer and its memory does not, and what is drawn above idle falls with clock times
voltage squared.
"""

from dataclasses import dataclass, field

import numpy as np

from orrery.fleet.power.capping import Clocks, Reading
from orrery.fleet.power.phases import span_frac
from orrery.fleet.service.power_places import places_of
from orrery.fleet.service.power_readings import Flags, LimitReadings, PowerCap, PowerLimit, PowerReadings
from orrery.fleet.service.replicas import DRAINING, SERVING, STARTING, ReplicaStates
from orrery.serving.requests import Floats
from orrery.serving.simulation.tables import _kernel as tables


@dataclass(slots=True, eq=False)
class _Metered:
    """A limit as the run goes on."""

    limit: PowerLimit
    is_behind: Flags  # by replica
    clocks: Clocks = field(default_factory=Clocks)  # in force
    ordered: list[Clocks] = field(default_factory=list[Clocks])  # what the rule asked for, in turn
    changes: list[tuple[float, Clocks]] = field(default_factory=list[tuple[float, Clocks]])

    def ask(self, drawn_w: float) -> int | None:
        """The number of the clocks that the rule asks for; None where nothing changes."""
        last = self.ordered[-1] if self.ordered else self.clocks
        target_clocks = self.limit.rule(Reading(drawn_frac=drawn_w / self.limit.limit_w, clocks=last))
        if target_clocks == last:
            return None
        self.ordered.append(target_clocks)
        return len(self.ordered) - 1


class _Part:
    """One service behind the limits: its replicas, which stand together among all of them, and what they spent."""

    def __init__(self, states: ReplicaStates, first: int) -> None:
        self.states, self.size = states, len(states.replicas)
        self.replicas = slice(first, first + self.size)
        self._of_lane = np.zeros(states.rows.world.lanes.shape[0], dtype=np.int64)
        self.of_machine = np.zeros(states.rows.world.clocks.size, dtype=np.int64)
        for k, replica in enumerate(states.replicas):
            self._of_lane[replica.lanes] = k
            self.of_machine[replica.machines] = k

    def spent_j(self) -> Floats:
        """Joules above idle that each replica has spent."""
        spent = self.states.rows.world.rates[:, tables.SPENT_J]
        return np.asarray(np.bincount(self._of_lane, spent, self.size), dtype=np.float64)

    def runs(self) -> Flags:
        """Whether each replica runs."""
        return np.array([r.state in (STARTING, SERVING, DRAINING) for r in self.states.replicas], np.bool_)

    def set(self, clock: Floats) -> None:
        """Put the clock of every replica in force."""
        world, mine = self.states.rows.world, clock[self.replicas]
        world.clocks[:] = mine[self.of_machine]
        world.spans[:] = np.array([span_frac(c) for c in mine.tolist()])[self.of_machine]


class PowerMeter:
    """Meters and clocks of a run as it goes on: of one service, or of several that stand behind the same limits."""

    def __init__(self, cap: PowerCap, *services: ReplicaStates) -> None:
        self.cap = cap
        self._places = places_of(cap, [terms for states in services for terms in states.setup.terms])
        self.metered = [
            _Metered(limit, is_behind) for limit, is_behind in zip(cap.limits, self._places.is_behind, strict=True)
        ]
        self._parts: list[_Part] = []
        for states in services:
            self._parts.append(_Part(states, sum(part.size for part in self._parts)))
        self._read_s, self._spent_j = 0.0, np.zeros(self._places.is_low.size)
        self.last_w = np.zeros(len(cap.limits))  # the latest reading of each limit
        self.readings: list[tuple[float, Floats]] = []
        self.changes: list[tuple[float, Floats]] = []

    def read(self, now_s: float) -> list[tuple[int, int]]:
        """Look at every meter; limits whose rules ask for other clocks, and the numbers of these."""
        spent_j = np.concatenate([part.spent_j() for part in self._parts])
        drawn_w = self._idle_w() + (spent_j - self._spent_j) / (now_s - self._read_s)
        self._read_s, self._spent_j = now_s, spent_j
        each = np.array([float(drawn_w[one.is_behind].sum()) for one in self.metered])
        self.last_w = each
        self.readings.append((now_s, each))
        numbers = ((k, one.ask(float(w))) for k, (one, w) in enumerate(zip(self.metered, each, strict=True)))
        return [(k, number) for k, number in numbers if number is not None]

    def _idle_w(self) -> Floats:
        """Watts by replica of what runs, idle, with the machines around it; owned ones always draw."""
        runs = np.concatenate([part.runs() for part in self._parts])
        return np.where(self._places.is_owned | runs, self._places.standing_w, 0.0)

    def set(self, which: int, number: int, now_s: float) -> None:
        """The clocks that a limit's rule asked for come into force."""
        one = self.metered[which]
        one.clocks = one.ordered[number]
        one.changes.append((now_s, one.clocks))
        clock = self._places.clocks([m.clocks for m in self.metered])
        self.changes.append((now_s, clock))
        for part in self._parts:
            part.set(clock)

    def forget(self) -> None:
        """Drop what only the end of a run has a use for."""
        del self.readings[:], self.changes[:]
        for one in self.metered:
            del one.changes[:]

    def collected(self, service: int = 0) -> PowerReadings:
        """Readings, which are of all that stands behind a limit, and the clocks of one service's replicas so far."""
        drawn_w = np.array([w for _, w in self.readings]).reshape(-1, len(self.metered))
        part = self._parts[service]
        return PowerReadings(
            at_s=np.array([at for at, _ in self.readings]),
            limits=tuple(
                LimitReadings(
                    limit=one.limit,
                    rated_w=float(self._places.rated_w[one.is_behind].sum()),
                    is_behind=one.is_behind[part.replicas],
                    drawn_w=drawn_w[:, k],
                    changed_s=np.array([at for at, _ in one.changes]),
                    clock_frac=np.array([(c.low_ratio, c.high_ratio) for _, c in one.changes]).reshape(-1, 2),
                )
                for k, one in enumerate(self.metered)
            ),
            is_low=self._places.is_low[part.replicas],
            replica_of_machine=part.of_machine,
            changed_s=np.array([at for at, _ in self.changes]),
            clock_frac=np.array([c[part.replicas] for _, c in self.changes]).reshape(-1, part.size),
        )

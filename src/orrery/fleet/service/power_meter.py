"""The draw of a whole service, read every so often, and clocks that a rule lowers near a limit.

A reading is the mean draw since the one before: idle watts of what runs, the machines around it, and the joules that
steps have spent above idle. A rule (``fleet.power_cap``) answers it with the clocks of low and of high priority, which
come into force after a delay. At a part of its clock a step's arithmetic takes longer and its memory does not, and what
is drawn above idle falls with clock times voltage squared.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orrery.fleet.power.capping import Clocks, Reading
from orrery.fleet.power.phases import span_frac
from orrery.fleet.service.power_readings import PowerCap, PowerReadings
from orrery.fleet.service.replicas import DRAINING, SERVING, STARTING, ReplicaStates
from orrery.fleet.service.setup import FleetService


@dataclass(slots=True, eq=False)
class PowerMeter:
    """Meter and clocks of a run as it goes on."""

    cap: PowerCap
    setup: FleetService
    states: ReplicaStates
    clocks: Clocks = field(default_factory=Clocks)
    ordered: list[Clocks] = field(default_factory=list[Clocks])  # what the rule asked for, in turn
    readings: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    changes: list[tuple[float, Clocks]] = field(default_factory=list[tuple[float, Clocks]])
    read_s: float = 0.0
    spent_j: float = 0.0

    def read(self, now_s: float) -> int | None:
        """Look at the meter; the number of the clocks that the rule asks for, None where nothing changes."""
        spent_j = sum(self.states.spent_by_pool())
        drawn_w = self.standing_w() + (spent_j - self.spent_j) / (now_s - self.read_s)
        self.read_s, self.spent_j = now_s, spent_j
        self.readings.append((now_s, drawn_w))
        last = self.ordered[-1] if self.ordered else self.clocks
        target_clocks = self.cap.rule(Reading(drawn_frac=drawn_w / self.cap.limit_w, clocks=last))
        if target_clocks == last:
            return None
        self.ordered.append(target_clocks)
        return len(self.ordered) - 1

    def standing_w(self) -> float:
        """Watts of replicas that run, idle, with the machines around them; owned ones always draw."""
        total_w = 0.0
        for pool, terms in enumerate(self.setup.terms):
            there = len(self.states.of_pool(pool, STARTING, SERVING, DRAINING))
            powered = terms.replicas_max if terms.purchase == "owned" else there
            total_w += powered * (terms.idle_power_w + terms.host_power_w)
        return total_w

    def set(self, number: int, now_s: float) -> None:
        """The clocks that were asked for come into force."""
        self.clocks = self.ordered[number]
        self.changes.append((now_s, self.clocks))
        world, is_low = self.states.rows.world, self.is_low()
        low, high = self.clocks.low_ratio, self.clocks.high_ratio
        world.clocks[:] = np.where(is_low, low, high)
        world.spans[:] = np.where(is_low, span_frac(low), span_frac(high))

    def is_low(self) -> NDArray[np.bool_]:
        """By engine: whether its replica is of low priority; they are spread evenly over each pool."""
        found = np.zeros(self.states.rows.world.clocks.size, dtype=np.bool_)
        share = self.cap.low_priority_frac
        for pool in range(len(self.setup.terms)):
            mine = [r for r in self.states.replicas if r.pool == pool]
            for k, replica in enumerate(mine):
                found[replica.machines] = int((k + 1) * share + 1e-9) > int(k * share + 1e-9)
        return found

    def collected(self) -> PowerReadings:
        """Readings and changes of clocks so far."""
        at_s, drawn_w = np.array(self.readings).reshape(-1, 2).T
        return PowerReadings(
            limit_w=self.cap.limit_w,
            at_s=at_s,
            drawn_w=drawn_w,
            changed_s=np.array([at for at, _ in self.changes]),
            clock_frac=np.array([(c.low_ratio, c.high_ratio) for _, c in self.changes]).reshape(-1, 2),
            is_low=tuple(self.is_low().tolist()),
        )

"""Failure rates, costs of a failure, and the run that failures interrupt.

Failures of many independent parts with exponential lives are a Poisson process whose rate is the sum of theirs:

    rate = devices / device MTBF + nodes / node MTBF + links / link MTBF + 1 / software MTBF

A part whose MTBF is infinite never fails. [barlow-proschan-1975]
"""

import math
from dataclasses import dataclass

from orrery.base.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultModel:
    """A job's parts and their lives, and the time from a failure to the next step of training.

    ``detection_s`` and ``diagnosis_s`` pass while nothing runs, so nothing fails in them; ``restart_s`` (new processes,
    communicators, warm-up) and loading run on the whole job and may fail themselves. With ``repair_s`` above 0 a failed
    node is replaced from ``num_spares`` and comes back when it is repaired; a failure that finds no spare waits.
    """

    num_devices: int
    devices_per_node: int = 8
    device_mtbf_s: float = math.inf  # of one device
    node_mtbf_s: float = math.inf  # of one node without its devices: host, power, storage
    link_mtbf_s: float = math.inf  # of one device's link to the network
    software_mtbf_s: float = math.inf  # of the whole job
    detection_s: float = 0.0
    diagnosis_s: float = 0.0
    restart_s: float = 0.0
    num_spares: int = 0
    repair_s: float = 0.0

    def __post_init__(self) -> None:
        check_positive(self, "num_devices", "devices_per_node")
        check_positive(self, "device_mtbf_s", "node_mtbf_s", "link_mtbf_s", "software_mtbf_s")
        check_not_negative(self, "detection_s", "diagnosis_s", "restart_s", "num_spares", "repair_s")

    @property
    def num_nodes(self) -> int:
        """Nodes that the devices fill."""
        return -(-self.num_devices // self.devices_per_node)

    @property
    def failures_per_s(self) -> float:
        """Rate of the whole job: the sum over its parts."""
        return (
            self.num_devices / self.device_mtbf_s
            + self.num_nodes / self.node_mtbf_s
            + self.num_devices / self.link_mtbf_s
            + 1.0 / self.software_mtbf_s
        )

    @property
    def node_loss_frac(self) -> float:
        """Share of failures that take a node's memory with them: those of devices, links and nodes, not of software."""
        rate = self.failures_per_s
        return 1.0 - 1.0 / self.software_mtbf_s / rate if rate > 0.0 else 0.0

    @property
    def spare_wait_s(self) -> float:
        """Mean wait of a failure for a node: Erlang's loss probability times the first of the repairs to end."""
        if self.repair_s == 0.0:
            return 0.0
        offered = self.failures_per_s * self.node_loss_frac * self.repair_s
        return self.node_loss_frac * erlang_loss_frac(offered, self.num_spares) * self.repair_s / (self.num_spares + 1)

    @property
    def down_s(self) -> float:
        """From a failure to the start of the restart."""
        return self.detection_s + self.diagnosis_s + self.spare_wait_s


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlan:
    """How often a run saves, what that stops, and when a save counts.

    A save that is written in the background is of use only ``lag_s`` after it was taken.
    """

    interval_s: float  # work between two saves
    blocked_s: float = 0.0  # training stands still for one save
    lag_s: float = 0.0  # from the end of the stop until the save can be restored
    load_s: float = 0.0  # reading it back

    def __post_init__(self) -> None:
        check_positive(self, "interval_s")
        check_not_negative(self, "blocked_s", "lag_s", "load_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The work: so many steps of so long, were nothing to fail."""

    step_s: float
    num_steps: int

    def __post_init__(self) -> None:
        check_positive(self, "step_s", "num_steps")

    @property
    def work_s(self) -> float:
        """Time of the steps alone."""
        return self.step_s * self.num_steps


def erlang_loss_frac(offered_load: float, num_spares: int) -> float:
    """The share of failures that find every spare in repair: Erlang's B(spares, rate x repair time).

    The job stands while it waits, so no more can fail: the chain is birth and death, with weights a^j / j!.
    [erlang-1917]
    """
    lost = 1.0
    for spare in range(1, num_spares + 1):
        lost = offered_load * lost / (spare + offered_load * lost)
    return lost


def check_positive(plan: object, *names: str) -> None:
    """Refuse zero, a negative number, or none at all."""
    for name in names:
        if not (value := getattr(plan, name)) > 0:
            raise ScenarioError(f"{type(plan).__name__}.{name}: got {value:g}; write a number above 0.")


def check_not_negative(plan: object, *names: str) -> None:
    """Refuse what is below zero or without end."""
    for name in names:
        if not 0 <= (value := getattr(plan, name)) < math.inf:
            raise ScenarioError(f"{type(plan).__name__}.{name}: got {value:g}; write a finite number from 0.")


def check_fracs(**shares: float) -> None:
    """Refuse a share outside 0 to 1."""
    for name, value in shares.items():
        if not 0.0 <= value <= 1.0:
            raise ScenarioError(f"{name}: got {value:g}; write a share from 0 to 1.")

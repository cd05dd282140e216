"""A run: long work that somebody asked for, as it stands in the file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]

ACTIVE: frozenset[State] = frozenset({"queued", "running"})
"""States of a run that is not over; in the others nothing more will come."""

PHASES = {
    "": "waiting for its turn",
    "starting": "starting a process",
    "loading": "loading the simulator",
    "compiling": "loading the simulator",
    "generating": "drawing the requests",
    "simulating": "serving requests",
    "computing": "computing the figures",
    "sweeping": "simulating, run by run",
    "searching": "trying rates",
    "planning": "searching plans",
    "holding": "simulating the best plans",
    "laying out": "searching layouts",
    "reporting": "writing the report; small simulations show what would change the answer",
    "keeping": "writing the result",
}
"""Descriptions of what a run does, by the name of its phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run: its inputs, progress and times. ``total`` 0: the amount of work is unknown."""

    id: str
    kind: str
    settings: Mapping[str, Any]  # as they stand in an address: names, never paths
    options: Mapping[str, Any]  # of its kind, beside the scenario: what a sweep varies, the window of a timeline
    state: State = "queued"
    phase: str = ""
    done: int = 0
    total: int = 0
    message: str = ""  # why it failed, or what came out last
    created_s: float = 0.0  # since 1970
    started_s: float | None = None
    ended_s: float | None = None

    @property
    def is_active(self) -> bool:
        """Whether more will come of it."""
        return self.state in ACTIVE

    @property
    def frac(self) -> float | None:
        """How much of the phase is done; None where nobody knows."""
        return min(self.done / self.total, 1.0) if self.total else None

    @property
    def text(self) -> str:
        """The phase as text, with its numbers."""
        count = f": {self.done:,} of {self.total:,}" if self.total else ""
        return PHASES.get(self.phase, self.phase) + count

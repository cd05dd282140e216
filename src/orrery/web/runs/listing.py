"""The list of runs: a line each, newest first."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from orrery.web.runs.inputs import describe
from orrery.web.work.kinds import KINDS
from orrery.web.work.run import Run

STATES = {
    "queued": ("waits", "dim"),
    "running": ("runs", "warn"),
    "done": ("done", "good"),
    "failed": ("failed", "bad"),
    "cancelled": ("cancelled", "dim"),
    "interrupted": ("interrupted", "warn"),
}
"""Text of each state, and the class of its badge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A run as the list shows it."""

    run: Run
    kind: str
    description: str
    state: str
    look: str
    created: str
    took: str


def line(run: Run) -> Line:
    """One run."""
    state, look = STATES[run.state]
    kind = KINDS[run.kind].title if run.kind in KINDS else run.kind
    return Line(
        run=run,
        kind=kind,
        description=describe(run),
        state=state,
        look=look,
        created=ago(run.created_s),
        took=took(run),
    )


def lines_of(runs: Sequence[Run], kind: str, state: str, text: str) -> tuple[Line, ...]:
    """List the runs of a kind, in a state, that hold all words of a text; blanks let all of them through."""
    words = text.casefold().split()
    found = (line(run) for run in runs if kind in ("", run.kind) and state in ("", run.state))
    return tuple(one for one in found if all(word in f"{one.kind} {one.description}".casefold() for word in words))


def ago(moment_s: float) -> str:
    """``3 min ago``."""
    past_s = max(0.0, time.time() - moment_s)
    for unit_s, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if past_s >= unit_s:
            return f"{past_s / unit_s:.0f} {name} ago"
    return "just now"


def took(run: Run) -> str:
    """How long it ran, or has run."""
    if run.started_s is None:
        return ""
    spent_s = max(0.0, (run.ended_s or time.time()) - run.started_s)
    return f"{spent_s:.0f} s" if spent_s < 120 else f"{spent_s / 60:.0f} min"

"""A reader of one tool's files: how it knows them, and the rows of a measured table that it makes of them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.calibrate.runs.log import Log

UserSettings = Mapping[str, str]
"""The user's statements about the runs: column of a measured table -> cell."""


@dataclass(slots=True)
class ParsedRun:
    """One run: its cells, and what a reader must know about it."""

    cells: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])

    def add_note(self, column: str, value: float | str) -> None:
        """Fill a cell; a number that is not finite, or blank text, leaves it blank."""
        if isinstance(value, str):
            if value:
                self.cells[column] = value
        elif math.isfinite(value):
            self.cells[column] = f"{value:.10g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """``read`` gets all files of its kind together, because two scrapes make one run."""

    name: str
    recognise: Callable[[Log], bool]
    read: Callable[[Sequence[Log], UserSettings], list[ParsedRun]]


@cache
def readers() -> tuple[Reader, ...]:
    """Every reader in the folder ``readers``, by name of file."""
    package = import_module("orrery.calibrate.runs.readers")
    found = sorted(m.name for m in iter_modules(package.__path__))
    return tuple(import_module(f"{package.__name__}.{name}").READER for name in found)


FAILED_FRAC = 0.05
"""With more failed requests than this share, a run says more about what went wrong than about the engine."""


def check_requests(where: str, completed: float, failed: float) -> Iterator[str]:
    """A note where a few requests failed; ScenarioError where none were served or too many failed."""
    if not completed > 0:
        raise ScenarioError(f"{where}: no request was completed, so nothing was measured; leave the file out.")
    if failed > 0:
        share = failed / (completed + failed)
        if share > FAILED_FRAC:
            raise ScenarioError(
                f"{where}: {failed:.0f} of {completed + failed:.0f} requests failed; times of the rest are those of an "
                f"engine in trouble. Run it again with fewer than {percent(FAILED_FRAC)} failing, or leave the file "
                "out."
            )
        yield f"{failed:.0f} of {completed + failed:.0f} requests failed"


def check_duration(where: str, duration_s: float) -> None:
    """ScenarioError where a run took no time, or the file does not say how long."""
    if not duration_s > 0:
        got = "no duration" if math.isnan(duration_s) else f"a duration of {duration_s:g} s"
        raise ScenarioError(f"{where}: states {got}; the file is incomplete, or the run never started.")


def needed(user_settings: UserSettings, where: str, columns: Mapping[str, str]) -> dict[str, float]:
    """Numbers that a file does not hold and the user must say: column -> flag with an example."""
    missing = [flag for column, flag in columns.items() if not user_settings.get(column)]
    if missing:
        raise ScenarioError(f"{where}: this tool does not write down how it was run; add {', '.join(missing)}.")
    out: dict[str, float] = {}
    for column in columns:
        try:
            out[column] = float(user_settings[column])
        except ValueError:
            raise ScenarioError(
                f"{columns[column].split(' ')[0]}: got {user_settings[column]!r}; write a number."
            ) from None
    return out


def arrivals(run: ParsedRun, concurrency: float, rate_per_s: float, in_flight: float = math.nan) -> None:
    """Write down how requests arrived: a fixed number in flight, a rate, or (neither) all at once.

    With both a limit and a rate it was a closed loop where the limit was nearly filled on average, else open.
    """
    has_limit, has_rate = concurrency > 0, rate_per_s > 0
    if has_limit and has_rate:
        has_rate = not in_flight >= 0.9 * concurrency
        run.notes.append(f"had a rate and a limit; taken as {'open, at the rate' if has_rate else 'a closed loop'}")
    if has_rate:
        run.add_note("mode", "open")
        run.add_note("request_rate_per_s", rate_per_s)
    elif has_limit:
        run.add_note("mode", "closed")
        run.add_note("concurrency", concurrency)
    else:
        run.add_note("mode", "offline")

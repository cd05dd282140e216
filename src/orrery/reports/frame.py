"""Frame of every report: title, day, version, settings, and the command that repeats it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orrery import __version__
from orrery.execution.memory import Infeasible
from orrery.reports.report import Command, Report, Section
from orrery.reports.source import Source
from orrery.reports.words import format_value

TITLES = {
    "plan": "Serving {model}: which machines, and what they cost",
    "estimate": "Serving {model}: one configuration",
    "simulate": "Serving {model} under load",
    "capacity": "Serving {model}: how much load it takes",
    "sweep": "Serving {model}: settings compared",
    "train": "Training {model}: one configuration",
    "train-plan": "Training {model}: the best layout",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Parts that each kind of report supplies."""

    title: str = ""
    author: str = ""
    made: str = ""  # the day, ISO 8601; empty: today


def framed(source: Source, frame: Frame, *, model: str, commands: Sequence[Command] = (), **content: Any) -> Report:
    """The report of some content."""
    defaults: dict[str, Any] = {
        "summary": (),
        "numbers": (),
        "alternatives": None,
        "sensitivity": None,
        "where": None,
        "assumptions": (),
        "facts": (),
        "accuracy": None,
        "limits": (),
        "infeasible": None,
        "money": None,
        "risks": (),
    }
    again = Command(about="Ask the same question again", line=source.command)
    return Report(
        kind=source.kind,
        title=frame.title or TITLES[source.kind].format(model=model),
        author=frame.author,
        made=frame.made or f"{datetime.now(UTC):%Y-%m-%d}",
        version=__version__,
        settings=source.scenario.written(),
        commands=(again, *commands),
        **(defaults | content),
    )


def infeasible(
    source: Source,
    frame: Frame,
    shortfall: Infeasible | Mapping[str, Any],
    *,
    model: str,
    question: tuple[str, ...],
    notes: Sequence[str] = (),
    alternatives: Section | None = None,
) -> Report:
    """The report that says no: what is needed, what there is, and the smallest change that would do."""
    shortfall = shortfall if isinstance(shortfall, Infeasible) else Infeasible(**shortfall)
    need, have = format_value(shortfall.need, shortfall.unit), format_value(shortfall.have, shortfall.unit)
    return framed(
        source,
        frame,
        model=model,
        question=question,
        infeasible=shortfall,
        headline=f"No. {shortfall.what}: it needs {need} and has {have}.",
        summary=(f"The smallest change: {shortfall.smallest_change}",) if shortfall.smallest_change else (),
        assumptions=tuple(dict.fromkeys(notes)),
        alternatives=alternatives,
    )


def prices_of(source: Source, device: str) -> Command:
    """Where the price comes from."""
    return Command(about="See the prices and their sources", line=shlex.join(["orrery", "show", "price", device]))

"""A report as data: the question, the answer, and everything that somebody who pays for it may ask next.

Made once from an answer; the page, the PDF and ``--json`` are three views of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

from orrery.base.cost import Interval
from orrery.base.sources import Fact
from orrery.execution.memory import Infeasible
from orrery.reports.words import format_interval, format_value
from orrery.scenario.answer import to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One figure of the answer, with the interval around it where one is known."""

    name: str  # as in the answer's JSON
    label: str
    value: float | None
    unit: str
    interval: Interval | None = None

    @property
    def text(self) -> str:
        """As a person reads it."""
        return format_value(self.value, self.unit)

    @property
    def between(self) -> str:
        """The 80 % interval as text; empty where there is none."""
        return format_interval(self.interval, self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of words; the first ``num_words`` columns are text, the others line up as numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    summary: str = ""
    num_words: int = 1
    chosen: int = -1  # the row of the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture that stands alone, and what it shows in a sentence."""

    title: str
    summary: str
    svg: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the report under one heading."""

    heading: str
    summary: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    listed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure that inputs move."""

    name: str
    label: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One input at one end of its range, and the figures there; ``lacks`` where there is no answer."""

    text: str
    values: Mapping[str, float] = field(default_factory=dict[str, float])
    infeasible: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input changed alone: down and up."""

    name: str
    low: End
    high: End


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Every figure re-answered with one input at a time changed."""

    summary: tuple[str, ...]
    metrics: tuple[Metric, ...]
    base: Mapping[str, float]
    inputs: tuple[Input, ...]
    flips: tuple[str, ...] = ()  # how far an input may go until the answer is another one
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A line to type, and what it does."""

    about: str
    line: str


KEY_NUMBERS = (
    "days",
    "usd",
    "cost_usd",
    "attained_frac",
    "capacity_requests_per_s",
    "num_devices",
    "usd_per_hour",
    "usd_per_million_tokens",
    "usd_per_million_output_tokens",
    "slo_attainment",
    "p99_ttft_ms",
    "p99_tpot_ms",
    "p99_ttft_s",
    "ttft_s",
    "tpot_s",
    "step_time_s",
    "mfu_frac",
    "highest_requests_per_s",
    "output_tokens_per_s",
    "output_throughput",
    "request_throughput",
    "peak_memory_bytes",
    "power_w",
    "energy_j",
)
"""Figures that the first page may have, the most asked for first."""

NUM_KEY = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report, from an engineer to the person who pays."""

    kind: str
    title: str
    author: str
    made: str  # the day, ISO 8601
    version: str
    question: tuple[str, ...]
    settings: Mapping[str, Any]
    infeasible: Infeasible | None  # what is lacking, where the answer is no
    headline: str
    summary: tuple[str, ...]
    numbers: tuple[Number, ...]
    alternatives: Section | None
    sensitivity: Sensitivity | None
    where: Section | None  # time, memory and money go
    assumptions: tuple[str, ...]
    facts: tuple[Fact, ...]
    accuracy: Table | None
    limits: tuple[str, ...]
    commands: tuple[Command, ...]
    money: Section | None = None
    risks: tuple[str, ...] = ()

    @property
    def key_numbers(self) -> tuple[Number, ...]:
        """The figures of the first page, in the order in which they are asked for."""
        found = {number.name: number for number in self.numbers}
        return tuple(found[name] for name in KEY_NUMBERS if name in found)[:NUM_KEY]

    @property
    def is_feasible(self) -> bool:
        """Whether there is an answer other than no."""
        return self.infeasible is None

    def to_json(self) -> dict[str, Any]:
        """The content as plain data; pictures are left to the page."""
        found = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        if self.is_feasible:
            del found["infeasible"]
        return found


def _plain(value: Any) -> Any:
    """As answers become JSON, without pictures, and facts with their citation."""
    if isinstance(value, Figure):
        return {"title": value.title, "summary": value.summary}
    if isinstance(value, Fact):
        return to_json(value) | {"cite": value.cite()}
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, Section | Sensitivity):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return to_json(value)

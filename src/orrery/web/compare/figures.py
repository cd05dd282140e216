"""Figures of both designs, and whether each difference exceeds its uncertainty."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from orrery.reports.words import format_value
from orrery.scenario.compare import in_words
from orrery.scenario.what_if.difference import Difference
from orrery.serving.extrapolation import shared_frac
from orrery.serving.intervals import difference_interval
from orrery.web.compare.sides import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number of an answer, by its path there; ``less`` and ``more`` say what less and more of it mean."""

    path: str
    name: str
    unit: str
    less: str = ""
    more: str = ""


MEASURES: tuple[Measure, ...] = (
    Measure(path="output_tokens_per_s", name="Throughput", unit="tokens_per_s", less="slower", more="faster"),
    Measure(path="tpot_s", name="Time per output token", unit="s", less="faster", more="slower"),
    Measure(path="ttft_s", name="Time to first token", unit="s", less="faster", more="slower"),
    Measure(path="latency_s", name="End-to-end latency", unit="s", less="faster", more="slower"),
    Measure(path="requests_per_s", name="Requests", unit="requests_per_s", less="slower", more="faster"),
    Measure(
        path="usd_per_million_tokens",
        name="Cost ($/1M output tokens)",
        unit="usd",
        less="cheaper",
        more="more expensive",
    ),
    Measure(path="power_w", name="Power, all devices", unit="w", less="lower", more="higher"),
    Measure(path="energy_j_per_token", name="Energy per output token", unit="j", less="lower", more="higher"),
    Measure(path="memory.weights_bytes", name="Weights, each device", unit="bytes"),
    Measure(path="memory.kv_capacity_tokens", name="KV cache capacity", unit="tokens"),
    Measure(path="memory.peak_bytes", name="Memory in use, each device", unit="bytes"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One figure of both; a value or an interval that is not known is None."""

    measure: Measure
    a: float | None
    b: float | None
    a_80: tuple[float, float] | None
    b_80: tuple[float, float] | None
    ratio_80: tuple[float, float] | None = None  # of B over A; narrower than both where they share errors

    @property
    def ratio(self) -> float | None:
        """B over A."""
        return self.b / self.a if self.a and self.b is not None else None

    @property
    def overlaps(self) -> bool | None:
        """Whether both may be the same: the interval of their ratio, or else the two 80 % intervals, allows it; None
        where one is not known."""
        if self.ratio_80 is not None:
            return self.ratio_80[0] <= 1.0 <= self.ratio_80[1]
        if self.a_80 is None or self.b_80 is None:
            return None
        return self.a_80[0] <= self.b_80[1] and self.b_80[0] <= self.a_80[1]

    @property
    def verdict(self) -> str:
        """Verdict on B against A: ``likely`` only where the intervals are apart."""
        if self.ratio is None or self.a is None or self.b is None:
            return ""
        if self.a == self.b:
            return "the same"
        if self.overlaps is None:
            return "no interval is known" if self.measure.more else "counted"
        return "within the 80 % intervals" if self.overlaps else f"B likely {self._word()}"

    @property
    def change(self) -> str:
        """Difference of B from A, with its 80 % interval where one is known: ``16 % lower (80 %: 8 to 24)``."""
        if self.ratio is None:
            return self.verdict
        if self.ratio_80 is None:
            is_counted = not self.measure.more
            return in_words(Difference(frac=self.ratio - 1.0)) if is_counted else self.verdict
        low, high = self.ratio_80
        return in_words(Difference(frac=self.ratio - 1.0, low_80=low - 1.0, high_80=high - 1.0))

    @property
    def is_sure(self) -> bool:
        """Whether the designs are told apart."""
        return self.overlaps is False and self.a != self.b

    def _word(self) -> str:
        return self.measure.less if (self.b or 0.0) < (self.a or 0.0) else self.measure.more

    def describe(self, which: str) -> str:
        """Format one of both values as text."""
        value = self.a if which == "a" else self.b
        return "-" if value is None else format_value(value, self.measure.unit)

    def between(self, which: str) -> str:
        """Format the 80 % interval of one of both values as text; empty where there is none."""
        ends = self.a_80 if which == "a" else self.b_80
        return (
            ""
            if ends is None
            else f"{format_value(ends[0], self.measure.unit)} to {format_value(ends[1], self.measure.unit)}"
        )


def compared(a: Side, b: Side) -> tuple[Compared, ...]:
    """Every figure that at least one of both has."""
    return tuple(_compared(a, b))


def _compared(a: Side, b: Side) -> Iterator[Compared]:
    told_a, told_b = (side.answer.to_json() if side.answer else {} for side in (a, b))
    for measure in MEASURES:
        values = [_at(description, measure.path) for description in (told_a, told_b)]
        if any(v is not None for v in values):
            a_80, b_80 = (_interval(summary, measure.path) for summary in (told_a, told_b))
            yield Compared(
                measure=measure, a=values[0], b=values[1], a_80=a_80, b_80=b_80, ratio_80=_ratio_80(a, b, measure.path)
            )


def _ratio_80(a: Side, b: Side, path: str) -> tuple[float, float] | None:
    """The interval of B over A: what both have of the same error counts once."""
    if a.answer is None or b.answer is None:
        return None
    answers = (a.answer, b.answer)
    values = [getattr(x, path, None) or getattr(x.estimate, path, None) for x in answers]
    around = [x.intervals().get(path) for x in answers]
    if values[0] is None or values[1] is None or around[0] is None or around[1] is None:
        return None
    shared = shared_frac(a.answer.question.deployment, b.answer.question.deployment)
    found = difference_interval(values[0], around[0], values[1], around[1], shared_frac=shared)
    return found.low_80, found.high_80


def _at(description: dict[str, Any], path: str) -> float | None:
    found: Any = description
    for key in path.split("."):
        found = cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else None
    return found


def _interval(description: dict[str, Any], path: str) -> tuple[float, float] | None:
    around = description.get("intervals", {}).get(path)
    return (around["low_80"], around["high_80"]) if around else None

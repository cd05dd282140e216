"""Time breakdown: a further token, a decode step and a step with prompts, by operation."""

from collections.abc import Mapping
from dataclasses import dataclass

from orrery.drawing import Axis, Bar, Part, stacked
from orrery.reports.ops import STEPS, StepKind, by_name, ops_of
from orrery.reports.words import BOUND_BY, format_value
from orrery.serving.estimate import Estimate

NAMED = 9
"""Operations that are told apart; the shorter ones are one."""

BESIDE = "host, and prefill steps"
REST = "all others"


def drawn(e: Estimate) -> str:
    """Shares of the time, a bar each; the same operation has the same colour in all of them."""
    times = {step: by_name(ops_of(e, step)) for step in STEPS}
    whole: dict[str, float] = {}
    for each in times.values():
        total_s = sum(each.values()) or 1.0
        for name, time_s in each.items():
            whole[name] = max(whole.get(name, 0.0), time_s / total_s)
    shown = sorted(whole, key=lambda name: -whole[name])[:NAMED]
    bars: list[Bar] = []
    if e.tpot_s > 0:
        beside_s = max(0.0, e.tpot_s - e.cost.time_s)
        bars.append(
            _bar(
                f"output token, {format_value(e.tpot_s, 's')}",
                times["decode"] | {BESIDE: beside_s},
                [*shown, BESIDE],
            )
        )
    for step in STEPS:
        if each := times[step]:
            bars.append(_bar(f"{STEPS[step]}, {format_value(sum(each.values()), 's')}", each, shown))
    return stacked(bars, Axis("Share of the time", "frac", high=1.0), title="Time breakdown")


def _bar(name: str, times_s: Mapping[str, float], shown: list[str]) -> Bar:
    total_s = sum(times_s.values()) or 1.0
    rest_s = sum(time_s for one, time_s in times_s.items() if one not in shown)
    parts = [Part(one, times_s.get(one, 0.0) / total_s) for one in shown]
    return Bar(name, [*parts, Part(REST, rest_s / total_s)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation as text."""

    name: str
    format: str
    time: str
    share: str
    limit: str
    flops: str
    bytes: str


def rows(e: Estimate, step: StepKind) -> tuple[Row, ...]:
    """The operations of a step, the longest first."""
    ops = sorted(ops_of(e, step), key=lambda op: -op.time_s)
    whole_s = sum(op.time_s for op in ops) or 1.0
    return tuple(
        Row(
            name=op.name if op.name == op.group else f"{op.name} ({op.group})",
            format=op.format,
            time=format_value(op.time_s, "s"),
            share=format_value(op.time_s / whole_s, "frac"),
            limit=BOUND_BY.get(op.bound_by, op.bound_by),
            flops=format_value(op.flops, "flops") if op.flops else "",
            bytes=format_value(op.bytes, "bytes") if op.bytes else "",
        )
        for op in ops
    )

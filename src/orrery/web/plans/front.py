"""The Pareto front: what can be had of two things at once, drawn, with the plans for this traffic among it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orrery.drawing import Axis, Point, scatter
from orrery.planner.pareto import front
from orrery.reports.words import format_value
from orrery.web.plans.candidate import Plain, design, named, usd_per_million

MAX_POINTS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Axis of the drawing: a figure that a point can be held against."""

    key: str  # in the address
    label: str
    unit: str
    of: Callable[[Plain, Plain], float | None]  # of an answer and one of its points
    is_less_better: bool = False
    is_log: bool = False


def _plain(name: str) -> Callable[[Plain, Plain], float | None]:
    return lambda answer, point: point[name]


def _usd(answer: Plain, point: Plain) -> float | None:
    return point.get("usd_per_million_tokens") or usd_per_million(answer, point)


X_AXES = (
    Side(key="user", label="Interactivity (tokens/s/user)", unit="", of=_plain("output_tokens_per_s_per_user")),
    Side(key="tpot", label="Time per output token", unit="s", of=_plain("tpot_s"), is_less_better=True),
    Side(key="ttft", label="Time to first token", unit="s", of=_plain("ttft_s"), is_less_better=True, is_log=True),
)
Y_AXES = (
    Side(key="device", label="Output tokens/s per device", unit="", of=_plain("output_tokens_per_s_per_device")),
    Side(key="usd", label="Cost ($/1M output tokens)", unit="usd", of=_usd, is_less_better=True, is_log=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint:
    """A point of the drawing, and its row."""

    id: str
    name: str
    href: str
    cells: tuple[str, ...]
    is_met: bool


SPOT_COLUMNS = ("Concurrency", "Tokens/s per user", "Tokens/s per device", "TTFT", "TPOT", "$/1M output tokens")


def side(sides: tuple[Side, ...], key: str) -> Side:
    """The side that an address names, else the first."""
    return next((s for s in sides if s.key == key), sides[0])


def front_points(answer: Plain) -> tuple[FrontPoint, ...]:
    """The front's points as rows, by falling speed for a reader."""
    return tuple(_point(answer, p, f"f{n}") for n, p in enumerate(answer["front"][:MAX_POINTS], 1))


def _point(answer: Plain, point: Plain, id: str) -> FrontPoint:
    cells = (
        f"{point['concurrency']:,.3g}",
        format_value(point["output_tokens_per_s_per_user"], ""),
        format_value(point["output_tokens_per_s_per_device"], ""),
        format_value(point["ttft_s"], "s"),
        format_value(point["tpot_s"], "s"),
        format_value(_usd(answer, point), "usd"),
    )
    return FrontPoint(
        id=id,
        name=named(point),
        href=design(answer, point),
        cells=cells,
        is_met=point["meets_objectives"],
    )


def drawn(answer: Plain, x: Side, y: Side) -> str:
    """Points that meet the objectives, points that miss one, and the plans at this load."""
    points = [(f"f{n}", p, _kind(p)) for n, p in enumerate(answer["front"][:MAX_POINTS], 1)]
    points += [(f"p{n}", p, "the plans at this load") for n, p in enumerate(answer["plans"], 1)]
    placed = [(id, p, kind, x.of(answer, p), y.of(answer, p)) for id, p, kind in points]
    known = [(id, p, kind, a, b) for id, p, kind, a, b in placed if a is not None and b is not None]
    best = _best([(a, b) for *_, a, b in known], x, y)
    shown: list[Point] = []
    for n, (id, p, kind, a, b) in enumerate(known):
        is_plan = id.startswith("p")
        name = f"{id.removeprefix('p')}. {named(p)}" if is_plan else named(p)
        shown.append(
            Point(
                a,
                b,
                name,
                href=design(answer, p),
                kind=kind,
                is_front=n in best and not is_plan,
                detail=f"{p['concurrency']:,.3g} in flight",
                id=id,
            )
        )
    return scatter(
        shown,
        Axis(x.label, x.unit, is_log=x.is_log),
        Axis(y.label, y.unit, is_log=y.is_log),
        title="Pareto front",
        says="Each point is a way to serve at some load; along the line one thing is only had for less of the other.",
    )


def _kind(point: Plain) -> str:
    return "meets SLO" if point["meets_objectives"] else "misses SLO"


def _best(values: list[tuple[float, float]], x: Side, y: Side) -> set[int]:
    """Which points no other one beats in both."""
    if not values:
        return set()
    xs, ys = np.array(values, dtype=np.float64).T
    return {int(i) for i in front(-xs if x.is_less_better else xs, -ys if y.is_less_better else ys)}

"""A curve as text: where a technique helps, where it hurts, and where the one becomes the other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from orrery.evidence.amounts import amount, input_name, input_text, metric_name
from orrery.evidence.judge.curve import Curve

STILL = 0.005
"""A comparison nearer to neutral changes nothing, and a step smaller than this share of its ends goes nowhere."""

LOGARITHMIC_RATIO = 8.0
"""Inputs that span more than this are looked at on a logarithmic scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A value of the input, and what is predicted there in the claim's unit."""

    value: float | str | bool
    predicted: float
    is_better: bool | None  # than the baseline; None where it is the same, or nothing is compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A curve, and what it says."""

    claim: str
    metric: str
    unit: str
    baseline: str
    input: str
    neutral: float | None  # the prediction at which nothing is gained or lost
    points: tuple[Point, ...]
    crossings: tuple[float, ...]  # values of the input, interpolated
    shape: str  # rises, falls, stays, or rises and falls
    sentence: str


def reading(curve: Curve) -> Reading:
    """Reading of a computed curve."""
    claim = curve.claim
    points = tuple(
        Point(value=value, predicted=predicted, is_better=_is_better(curve, predicted))
        for value, predicted in zip(curve.values, curve.predicted, strict=True)
    )
    crossings, shape = _crossings(curve, points), _shape(curve.predicted)
    return Reading(
        claim=claim.id,
        metric=claim.metric,
        unit=claim.unit,
        baseline=claim.baseline,
        input=curve.input,
        neutral=curve.neutral,
        points=points,
        crossings=crossings,
        shape=shape,
        sentence=" ".join(part for part in (_where(curve, points, crossings), _how(curve, points, shape)) if part),
    )


def _is_better(curve: Curve, predicted: float) -> bool | None:
    if curve.neutral is None or not math.isfinite(predicted) or abs(predicted - curve.neutral) <= STILL:
        return None
    return (predicted > curve.neutral) == (curve.better == "more")


def _crossings(curve: Curve, points: Sequence[Point]) -> tuple[float, ...]:
    """Where the predictions pass neutral, on straight lines between points that help and hurt; none for words."""
    numbers = _numbers(curve.values)
    if numbers is None or curve.neutral is None:
        return ()
    scale, back = (math.log, math.exp) if _is_logarithmic(numbers) else (float, float)
    found: list[float] = []
    decided = [(scale(x), p) for x, p in zip(numbers, points, strict=True) if p.is_better is not None]
    for (x, left), (y, right) in pairwise(decided):
        if left.is_better != right.is_better:
            below, above = left.predicted - curve.neutral, right.predicted - curve.neutral
            found.append(back(x + (y - x) * below / (below - above)))
    return tuple(found)


def _numbers(values: Sequence[float | str | bool]) -> list[float] | None:
    """The values as numbers that grow; None where some are words, or they go to and fro."""
    try:
        numbers = [float(value) for value in values if not isinstance(value, bool)]
    except ValueError:
        return None
    return numbers if len(numbers) == len(values) and all(a < b for a, b in pairwise(numbers)) else None


def _is_logarithmic(numbers: Sequence[float]) -> bool:
    return numbers[0] > 0.0 and numbers[-1] / numbers[0] > LOGARITHMIC_RATIO


def _shape(predicted: Sequence[float]) -> str:
    """Which way the predictions go."""
    steps = [b - a for a, b in pairwise(predicted) if abs(b - a) > STILL * max(abs(a), abs(b))]
    if not steps:
        return "stays"
    if all(step > 0.0 for step in steps):
        return "rises"
    return "falls" if all(step < 0.0 for step in steps) else "rises and falls"


def _where(curve: Curve, points: Sequence[Point], crossings: Sequence[float]) -> str:
    """On which side of which value the technique helps; empty where nothing is compared."""
    if curve.neutral is None:
        return ""
    better, worse, same = (_values(curve, points, word) for word in (True, False, None))
    if not better and not worse:
        return "Makes no difference in this range."
    if not worse:
        return f"Helps in this range; nothing is gained at {same}." if same else "Always helps in this range."
    if not better:
        return f"Never helps in this range; nothing is lost at {same}." if same else "Hurts in all of this range."
    if crossings:
        return _sides(curve, points, crossings)
    return f"Helps at {better}; hurts at {worse}."


def _values(curve: Curve, points: Sequence[Point], is_better: bool | None) -> str:
    """Values of the points with that ``is_better``, split by commas; by semicolons where a value has a comma."""
    text = [input_text(curve.input, p.value) for p in points if p.is_better is is_better]
    return ("; " if any(", " in value for value in text) else ", ").join(text)


def _sides(curve: Curve, points: Sequence[Point], crossings: Sequence[float]) -> str:
    """Helps below this, above that: the stretches between crossings, which help and hurt in turn."""
    ends = [input_text(curve.input, value) for value in crossings]
    stretches = [f"below about {ends[0]}", *(f"from {a} to {b}" for a, b in pairwise(ends)), f"above about {ends[-1]}"]
    first = 0 if next(p.is_better for p in points if p.is_better is not None) else 1
    helps = " and ".join(stretches[first::2])
    hurts = stretches[1 - first] if len(stretches) == 2 else "elsewhere"
    return f"Helps for {input_name(curve.input)} {helps}, hurts {hurts.replace('about ', '')}."


def _how(curve: Curve, points: Sequence[Point], shape: str) -> str:
    """Which way it goes, and the best of it; from where to where, where nothing is compared."""
    name, metric, unit = input_name(curve.input), metric_name(curve.claim.metric), curve.claim.unit
    is_one_way = shape in ("rises", "falls") and _numbers(curve.values) is not None
    over = f"with growing {name}" if is_one_way else f"over {name}"
    text = f"The {metric} {'hardly changes' if shape == 'stays' else shape} {over}"
    if curve.neutral is None:
        ends = [f"{amount(p.predicted, unit)} at {input_text(curve.input, p.value)}" for p in (points[0], points[-1])]
        return f"{text}, from {ends[0]} to {ends[1]}."
    best = (max if curve.better == "more" else min)(points, key=lambda p: p.predicted)
    if shape == "stays":
        return f"{text}: about {amount(best.predicted, unit)}."
    return f"{text}; best {amount(best.predicted, unit)} at {input_text(curve.input, best.value)}."

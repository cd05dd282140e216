"""Conditions of a query, held against papers: phrases in their words, numbers in their claims."""

from collections.abc import Sequence, Set
from dataclasses import replace

from orrery.evidence.amounts import amount
from orrery.evidence.find.document import Document, Number
from orrery.evidence.find.filters import Filters, devices_named, select
from orrery.evidence.find.parsed_query import Figure, ParsedQuery
from orrery.evidence.find.terms import words

SAME_FRAC = 0.01
"""Relative difference up to which two numbers count as the same."""

LATENCIES = frozenset({"ttft", "tpot", "itl", "tbt"})
"""Latencies of their own name, which "latency" means too."""

Found = dict[str, tuple[float, tuple[str, ...]]]


def meeting(query: ParsedQuery, documents: Sequence[Document], known: Sequence[Document]) -> Found:
    """The documents that meet every condition: key -> how far the numbers go, and why. ``known`` spells names."""
    selected = {d.key for d in select(known, query.filters)} if query.filters != Filters() else None
    on = {figure: devices_named(figure.device, known) if figure.device else set[str]() for figure in query.figures}
    found: Found = {}
    for document in documents:
        if selected is not None and document.key not in selected:
            continue
        if query.phrases and not _has(document, query.phrases):
            continue
        met = [_meeting(document, figure, on[figure]) for figure in query.figures]
        if all(met):
            numbers = [_farthest(figure, of) for figure, of in zip(query.figures, met, strict=True)]
            found[document.key] = (_reach(query.figures, numbers), tuple(map(_text, numbers)))
    return found


def _has(document: Document, phrases: Sequence[str]) -> bool:
    """Whether each phrase stands in some part of a paper, word by word."""
    parts = (document.title, document.text, *document.claims, *document.setting, *document.authors)
    spelled = [f" {' '.join(words(part))} " for part in parts]
    return all(any(f" {phrase} " in part for part in spelled) for phrase in phrases)


def _meeting(document: Document, figure: Figure, devices: Set[str]) -> list[Number]:
    """The claims of a paper that meet a number; what a baseline did counts only where it is asked for."""
    return [
        held
        for number in document.numbers
        if (names := _names(number.metric)).issuperset(figure.metric)
        and ("baseline" not in names or "baseline" in figure.metric)
        and (held := _in_unit(number, names, figure.unit)) is not None
        and _holds(held, figure)
        and (not figure.device or devices & set(number.devices))
    ]


def _names(metric: str) -> set[str]:
    """Words of a metric; a latency of its own name is a latency."""
    names = set(metric.split("_"))
    return names | {"latency"} if names & LATENCIES else names


def _in_unit(number: Number, names: Set[str], unit: str) -> Number | None:
    """The claim in a unit: reduced by 60 % is 2.5 times less; None where the one says nothing of the other."""
    if number.unit == unit:
        return number
    if unit == "ratio" and number.unit == "frac" and "reduction" in names and number.high < 1.0:
        metric = number.metric.replace("reduction", "ratio")
        return replace(number, metric=metric, low=1.0 / (1.0 - number.low), high=1.0 / (1.0 - number.high), unit=unit)
    return None


def _holds(number: Number, figure: Figure) -> bool:
    """Whether any number of the claim's range meets the condition."""
    value = figure.value
    return {
        ">": number.high > value,
        ">=": number.high >= value,
        "<": number.low < value,
        "<=": number.low <= value,
        "=": number.low - SAME_FRAC * abs(value) <= value <= number.high + SAME_FRAC * abs(value),
    }[figure.sign]


def _farthest(figure: Figure, met: Sequence[Number]) -> Number:
    """The claim that meets a number by most."""
    return min(met, key=lambda n: n.low) if figure.sign in ("<", "<=") else max(met, key=lambda n: n.high)


def _reach(figures: Sequence[Figure], numbers: Sequence[Number]) -> float:
    """By what the first number is met; papers with no other order stand by it, the farthest first."""
    if not figures:
        return 0.0
    return -numbers[0].low if figures[0].sign in ("<", "<=") else numbers[0].high


def _text(number: Number) -> str:
    """A claim as a phrase: throughput ratio 2 to 4 on h100-sxm."""
    ends = " to ".join(dict.fromkeys(amount(x, number.unit) for x in (number.low, number.high)))
    on = f" on {', '.join(number.devices)}" if number.devices else ""
    return f"{number.metric.replace('_', ' ')} {ends}{on}"

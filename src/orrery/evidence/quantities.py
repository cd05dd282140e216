"""Numbers with a unit in running text, in SI: "2.4x", "from 13B to 175B parameters", "40 and 52 percent"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_WORDS = {
    "two": 2.0,
    "three": 3.0,
    "four": 4.0,
    "five": 5.0,
    "six": 6.0,
    "seven": 7.0,
    "eight": 8.0,
    "nine": 9.0,
    "ten": 10.0,
    "one": 1.0,
    "an": 1.0,
    "half": 0.5,
    "several": 0.0,
}
_SCALES = {
    "": 1.0,
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "million": 1e6,
    "b": 1e9,
    "billion": 1e9,
    "g": 1e9,
    "t": 1e12,
    "trillion": 1e12,
    "p": 1e15,
    "e": 1e18,
}
_SCALE = r"(?P<scale>k|m|b|t|thousand|million|billion|trillion)?"
_PREFIX = r"(?P<scale>k|m|g|t|p|e)"
_DEVICES = r"gpus?|npus?|tpus?|accelerators|devices|gcds|nodes|workers|machines|servers|dies"
_MAKERS = r"(?:(?:nvidia|amd|intel|ascend|a100|h100|h800|v100|mi\d+x?|tesla|dgx|hopper|ampere)[\w-]*\s+){0,3}"

UNITS: tuple[tuple[str, float, str], ...] = (
    ("ratio", 1.0, r"\s?(?:x|\u00d7|times)(?![\w\u00d7]|\s?\d)|[\s-]?folds?\b"),
    ("orders_of_magnitude", 1.0, r"\s?(?:orders? of magnitudes?|oom)\b"),
    ("points", 0.01, r"\s?(?:%|percent(?:age)?|per cent)?[\s-]?points?\b"),
    ("frac", 0.01, r"\+?\s?%(?!\w)|[\s-](?:percent|per cent)\b"),
    ("tokens_per_s", 1.0, rf"\s?{_SCALE}[\s-]?(?:\w+ )?tokens?\s?(?:/\s?s(?:ec|econd)?\b|per second|/second)"),
    ("tokens", 1.0, rf"\s?{_SCALE}[\s-]?(?:(?:training|context|input|output) )?tokens?\b"),
    ("parameters", 1.0, r"[\s-]?(?P<scale>m|b|t|million|billion|trillion)(?:[\s-](?:model\s)?param(?:eter)?s?|\b)"),
    ("flops_per_s", 1.0, rf"[\s-]?{_PREFIX}(?:iga|era|eta|xa)?(?:flops|flop/s|ops/s|flops/s)\b"),
    ("bytes_per_s", 1.0, rf"\s?{_PREFIX}i?b/s(?:ec)?\b"),
    ("bits_per_s", 1.0, rf"\s?{_PREFIX}bps\b"),
    ("bytes", 1.0, rf"[\s-]?{_PREFIX}i?b(?:ytes?)?\b(?!/)"),
    ("s", 3600.0, r"[\s-]?(?:gpu[\s-])?hours?\b"),
    ("s", 86400.0, r"[\s-]?(?:gpu[\s-])?days?\b"),
    ("devices", 1.0, rf"[\s-]{_MAKERS}(?:{_DEVICES}|gpu nodes|worker nodes)\b"),
    ("s", 1e-9, r"\s?(?:ns|nanoseconds?)\b"),
    ("s", 1e-6, r"\s?(?:us|\u00b5s|\u03bcs|microseconds?)\b"),
    ("s", 1e-3, r"\s?(?:ms|msec|milliseconds?)\b"),
    ("s", 1.0, r"[\s-]?(?:s|sec|seconds?)\b"),
    ("s", 60.0, r"[\s-]?(?:min|minutes?)\b"),
    ("w", 1e-3, r"\s?mw\b"),
    ("w", 1.0, r"\s?(?:w|watts?)\b"),
    ("frames_per_s", 1.0, r"\s?(?:fps|frames per second|frames/s)\b"),
    ("db", 1.0, r"\s?db\b"),
    ("usd", 1.0, r"\s?(?:usd|dollars)\b"),
    ("bits", 1.0, r"[\s-]bits?\b"),
)
"""Unit, what one of it is in SI, and how it is written behind a number; the first that fits counts."""

_COUNTED = "|".join(_WORDS)
_ANY_NUMBER = rf"(?:{_NUMBER})"
_JOIN = r"\s?(?:-|\u2013|\u2014|~|sim|to)\s?|\s?(?:,|,?\sand)\s"
_HEAD = re.compile(
    rf"(?<![\w.])(?P<first>{_ANY_NUMBER})(?:\s?(?P<own>x|\u00d7|%|[mbtk]|gb|s|ms|times|percent)\b)?%?"
    rf"(?P<join>{_JOIN})(?P<second>{_ANY_NUMBER})"
    rf"|factors? (?:of )?(?:up to )?(?P<factor>{_ANY_NUMBER})(?![\w%])"
    rf"|(?<![\w.])(?:sim)?(?P<only>{_ANY_NUMBER})"
    rf"|\b(?P<word>{_COUNTED})(?=[\s-](?:times|fold|orders?)\b|fold\b)|\b(?P<twice>twice)\b",
    re.IGNORECASE,
)
_UNITS = tuple((unit, size, re.compile(pattern, re.IGNORECASE)) for unit, size, pattern in UNITS)


MOST = 1e30
"""Nobody measures as much: it is a row of digits."""

DIGITS = 12
"""Digits to round to: binary remainders beyond them are nobody's figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number, or the two ends of a range, with its unit and place."""

    low: float
    high: float
    unit: str
    start: int
    end: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, float(f"{getattr(self, name):.{DIGITS}g}"))


def quantities(text: str) -> Iterator[Quantity]:
    """Every number of a text that has a unit, in order."""
    return (quantity for quantity in _all(text) if quantity.high < MOST)


def _all(text: str) -> Iterator[Quantity]:
    at = 0
    while found := _HEAD.search(text, at):
        retained = list(_read(text, found))
        yield from retained
        at = max([found.end(), *(q.end for q in retained)])
        if found["second"] and not retained:  # the first number alone may have a unit
            at = found.end("first")
            only = _unit(text, at)
            if only:
                unit, size, scale, end = only
                value = _number(found["first"]) * size * scale
                yield Quantity(low=value, high=value, unit=unit, start=found.start(), end=end)
                at = end


def _read(text: str, found: "re.Match[str]") -> Iterator[Quantity]:
    """One quantity; two for a pair that is no range."""
    if found["twice"] or found["factor"]:
        value = _number(found["factor"]) if found["factor"] else 2.0
        yield Quantity(low=value, high=value, unit="ratio", start=found.start(), end=found.end())
        return
    measured = _unit(text, found.end())
    if not measured:
        return
    unit, size, scale, end = measured
    if not found["second"]:
        value = (_WORDS[found["word"].lower()] if found["word"] else _number(found["only"])) * size * scale
        if value > 0.0:
            yield Quantity(low=value, high=value, unit=unit, start=found.start(), end=end)
        return
    first, second = (_number(found[name]) * size * scale for name in ("first", "second"))
    own = _unit(text, found.end("first"))
    if own:
        first = _number(found["first"]) * own[1] * own[2]
    elif unit == "tokens" and (letter := (found["own"] or "").lower()) in _SCALES:
        first = _number(found["first"]) * (_SCALES[letter] if letter else scale)
    if (own and own[0] != unit) or found["join"].strip() in (",", "and", ", and"):
        start, half = found.start("second"), found.end("first")
        yield Quantity(low=first, high=first, unit=own[0] if own else unit, start=found.start(), end=half)
        yield Quantity(low=second, high=second, unit=unit, start=start, end=end)
    else:
        low, high = sorted((first, second))
        yield Quantity(low=low, high=high, unit=unit, start=found.start(), end=end)


def _unit(text: str, at: int) -> tuple[str, float, float, int] | None:
    """The unit that stands there: its name, size, scale, and where it ends."""
    for unit, size, pattern in _UNITS:
        if found := pattern.match(text, at):
            scale = _SCALES[(found.groupdict().get("scale") or "").lower()]
            if unit == "bits_per_s":
                return "bytes_per_s", size / 8.0, scale, found.end()
            return unit, size, scale, found.end()
    return None


def _number(text: str) -> float:
    return float(text.replace(",", ""))

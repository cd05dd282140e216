"""A query taken apart: exact phrases, fields such as ``author:dao``, and numbers such as ``throughput > 3x on H100``.

What is left are words, which are searched as ever. Phrases, fields and numbers are conditions: a paper that does not
meet them is no answer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from orrery.base.errors import ScenarioError, nearest
from orrery.evidence.find.document import Document
from orrery.evidence.find.filters import Filters
from orrery.evidence.find.terms import STOP_WORDS, words
from orrery.evidence.quantities import quantities

Sign = Literal[">=", "<=", ">", "<", "="]

SIGNS: tuple[Sign, ...] = get_args(Sign)
_SPELLED = {"≥": ">=", "≤": "<=", "=>": ">=", "=<": "<=", "==": "="}

FIELDS = tuple(field.name for field in fields(Filters))
"""Names that may stand before a colon."""

MAX_METRIC_WORDS = 4

_PHRASE = re.compile(r'["“”]([^"“”]*)["“”]')
_FIELD = re.compile(rf'\b({"|".join(FIELDS)}):(?:["“”]([^"“”]*)["“”]|(\S+))', re.IGNORECASE)
_NUMBER = re.compile(
    r"(?P<metric>(?:[\w/-]{1,40}[ \t]{1,4}){0,3}[\w/-]{1,40})\s{0,4}"
    r"(?P<sign>>=|<=|=>|=<|==|[><=≥≤])\s*(?P<value>\d[^<>=≥≤]*)"
)
_UNITLESS = re.compile(r"\d+(?:\.\d+)?")
_DEVICE = re.compile(r"\s*\bon\s+(?:an?\s+|the\s+)?(?P<device>[A-Za-z][\w-]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number that a claim must meet."""

    metric: tuple[str, ...]  # words that its name must have
    sign: Sign
    value: float
    unit: str  # one of orrery.evidence.words.UNITS
    device: str = ""

    @property
    def text(self) -> str:
        """The condition as it was understood, in base units."""
        on = f" on {self.device}" if self.device else ""
        return f"a claim of {' '.join(self.metric)} {self.sign} {self.value:g} {self.unit.replace('_', ' ')}{on}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """A query as conditions and words."""

    text: str  # the words that are left
    phrases: tuple[str, ...] = ()
    filters: Filters = Filters()  # noqa: RUF009  # frozen
    figures: tuple[Figure, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions, formatted."""
        named = ((name, getattr(self.filters, name)) for name in FIELDS)
        return (
            *(f"the words “{phrase}” in that order" for phrase in self.phrases),
            *(f"{name} {value}" for name, value in named if value),
            *(figure.text for figure in self.figures),
        )


def parse_query(query: str, documents: Sequence[Document]) -> ParsedQuery:
    """Take a query apart. Raises where a number is asked of what no paper of these measures."""
    filters, rest = Filters(), query
    for found in _FIELD.finditer(query):
        name, value = found[1].lower(), (found[2] or found[3] or "").strip()
        if before := getattr(filters, name):
            raise ScenarioError(
                f'{name}: got {before!r} and {value!r}; write {name}:"{before}, {value}" for any of them.'
            )
        filters = replace(filters, **{name: value})
    rest = _FIELD.sub(" ", rest)
    phrases = tuple(phrase for found in _PHRASE.finditer(rest) if (phrase := " ".join(words(found[1]))))
    rest = _PHRASE.sub(r" \1 ", rest)
    figures: list[Figure] = []
    while (found := _NUMBER.search(rest)) is not None:
        figure, start, end = _figure(found, documents)
        figures.append(figure)
        rest = f"{rest[:start]} {rest[end:]}"
    return ParsedQuery(text=rest, phrases=phrases, filters=filters, figures=tuple(figures))


def _figure(found: "re.Match[str]", documents: Sequence[Document]) -> tuple[Figure, int, int]:
    """The number, and where in the query it begins and ends."""
    value = found["value"]
    measured = next((q for q in quantities(value) if not value[: q.start].strip()), None)
    plain = _UNITLESS.match(value)
    if measured is None and plain is None:
        raise ScenarioError(f"{found[0].strip()!r}: got no number; write one such as 'throughput > 2x'.")
    number, unit = (measured.high, measured.unit) if measured else (float(plain[0]), "ratio")  # pyright: ignore
    length = measured.end if measured else plain.end()  # pyright: ignore[reportOptionalMemberAccess]
    device = _DEVICE.match(value, length)
    if device and not _is_device(device["device"].casefold(), documents):
        device = None
    metric, skipped = _metric(found["metric"], documents)
    figure = Figure(
        metric=metric,
        sign=_SPELLED.get(found["sign"], found["sign"]),  # pyright: ignore[reportArgumentType]
        value=number,
        unit=unit,
        device=device["device"].casefold() if device else "",
    )
    return figure, found.start("metric") + skipped, found.start("value") + (device.end() if device else length)


def _is_device(name: str, documents: Sequence[Document]) -> bool:
    """Whether a word names a device: it has a digit, or some paper's device begins with it."""
    return any(map(str.isdigit, name)) or any(d.casefold().startswith(name) for one in documents for d in one.devices)


def _metric(text: str, documents: Sequence[Document]) -> tuple[tuple[str, ...], int]:
    """The most words at the end of a text that some claim's metric has, and how many letters stand before them."""
    known = {frozenset(metric.split("_")) for d in documents for metric in d.metrics}
    places = [(m.start(), m[0].casefold()) for m in re.finditer(r"[\w/]+", text)][-MAX_METRIC_WORDS:]
    for first in range(len(places)):
        names = tuple(word for _, word in places[first:])
        if names[0] in STOP_WORDS:
            continue
        if any(known_words.issuperset(names) for known_words in known):
            return names, places[first][0]
    last = places[-1][1] if places else text
    near = nearest(last, {name for metric in known for name in metric})
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "write one such as throughput, latency or ttft."
    raise ScenarioError(f"No paper has a claim of {last!r} with a number; {hint}")

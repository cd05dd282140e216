"""Claims in an abstract, read by rule: numbers with units, what they are of, which way, against what.

Whether a number is a result, and not the size of a model or of a test bed, is weighed by the words around it.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from orrery.evidence.feed.entry import NumericClaim
from orrery.evidence.find.terms import words
from orrery.evidence.quantities import Quantity, quantities
from orrery.evidence.understanding.weights import shipped

MIN_CONFIDENCE_FRAC = 0.5
MAX_CLAIMS, MAX_NUMBERS = 40, 200
"""Largest numbers of claims and of numbers of one abstract; further ones are not looked at."""

NEAR_CHARACTERS = 90
"""A word farther from a number than this says nothing about it."""

COMMA_CHARACTERS = 30
"""How much farther a comma makes a word."""

_METRICS: tuple[tuple[str, str], ...] = (
    ("time_to_first_token", r"ttft|time[- ]to[- ]first[- ]token|first[- ]token latency"),
    ("time_per_output_token", r"tpot|tbt|time[- ](?:per|between) (?:output )?tokens?|inter[- ]token latency"),
    ("goodput", r"goodput"),
    ("request_rate", r"requests? rates?|requests per second|rps|qps|more requests"),
    ("throughput", r"throughputs?|tokens per second|tokens/s"),
    ("latency", r"latenc(?:y|ies)|response times?|delays?"),
    ("training_time", r"training (?:time|speed)|train(?:s|ing)? faster|time[- ]to[- ]train"),
    ("speedup", r"speed[- ]?ups?|faster|accelerat\w+|speeds? up|times speed"),
    ("time", r"(?:run|execution|wall[- ]clock |inference |search |iteration |step )times?|overheads?"),
    ("memory", r"memory(?! bandwidth)|footprint|storage|model size|kv cache|checkpoint size"),
    ("energy_efficiency", r"energy[- ]efficien\w+|power[- ]efficien\w+|tokens/j|efficien\w+ per watt"),
    ("energy", r"energy|carbon|emissions?"),
    ("power", r"power"),
    ("cost", r"costs?|price|cheaper|dollars?"),
    ("communication", r"communicat\w+|traffic|network volume|bytes sent"),
    ("bandwidth", r"bandwidth"),
    ("area", r"area"),
    ("accuracy", r"accurac(?:y|ies)|top-?1|mmlu|scores?|bleu|f1|map\b|quality|win rate|pass@\w+|success rates?"),
    ("error", r"errors?|perplexity|mape|deviation|degradation|loss"),
    ("utilization", r"utili[sz]ations?|mfu|of (?:the )?(?:theoretical )?peak|hardware efficiency"),
    ("compute", r"flops|computation\w*|operations|macs"),
    ("context", r"context|sequence lengths?"),
    ("parameters", r"parameters?|models?"),
    ("scale", r"gpus?|devices|nodes|npus?"),
)
"""Metrics of a claim, by the nearest such word."""

_METRIC = re.compile("|".join(rf"(?P<{name}>\b(?:{pattern}))" for name, pattern in _METRICS), re.IGNORECASE)
_DOWN = re.compile(
    r"\b(?:reduc\w+|lower\w*|less|sav\w+|cut\w*|decreas\w+|drop\w*|fewer|smaller|shrink\w*|cheaper"
    r"|shorten\w*|minimi\w+|eliminat\w+)\b",
    re.IGNORECASE,
)
_UP = re.compile(
    r"\b(?:increas\w+|improv\w+|higher|more|gain\w*|faster|speed\w*|boost\w*|outperform\w*|accelerat\w+"
    r"|better|larger|greater|surpass\w+|enhanc\w+|exceed\w*)\b",
    re.IGNORECASE,
)
_READINGS = (
    ("up to", r"up to|as (?:much|high|many|low) as|at most|maximum(?: of)?|max|a peak of"),
    ("at least", r"at least|more than|over|exceed(?:s|ing)?|above|beyond|>|≥|a minimum of"),
    ("less than", r"less than|below|under|within|fewer than|<|≤|no more than|only"),
    ("about", r"about|around|approximately|nearly|almost|roughly|~|sim|close to|some"),
    ("mean", r"on average|averag(?:e|es|ing)(?: of)?|a geo(?:metric )?mean(?: of)?|geomean|mean"),
)
_READING = re.compile(
    "(?:" + "|".join(f"(?P<r{i}>{p})" for i, (_, p) in enumerate(_READINGS)) + r")(?:\s(?:a|an|the|by|to|of))*\s*$",
    re.IGNORECASE,
)
_MEAN_AFTER = re.compile(r"^[^,.;]{0,40}\bon average\b", re.IGNORECASE)
_BASELINE = re.compile(
    r"\b(?:compared (?:to|with)|in comparison (?:to|with)|relative to|with respect to|over|than|against|versus|vs\.?)"
    r"\s+(?P<what>(?:the |an? )?[A-Za-z][^,;()]{2,80}?)"
    r"(?=[,;()]|\.\s|\.$| while | and | with | on | in | for | across |$)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A number that may be a claim, with the words around it."""

    claim: NumericClaim
    features: tuple[str, ...]


def claims_of(abstract: str) -> tuple[NumericClaim, ...]:
    """Claims of an abstract, in the order in which they stand there."""
    weighed = islice(candidates(abstract), MAX_NUMBERS)
    retained = (c.claim for c in weighed if c.claim.confidence_frac >= MIN_CONFIDENCE_FRAC)
    return tuple(dict.fromkeys(retained))[:MAX_CLAIMS]


def candidates(abstract: str, weights: Mapping[str, float] | None = None) -> Iterator[Candidate]:
    """Every number with a unit, and how sure it is a claim."""
    known = shipped().claim_weights if weights is None else weights
    sentences = _SENTENCE_END.split(abstract)
    for i, sentence in enumerate(sentences):
        for quantity in quantities(sentence):
            before, after = sentence[: quantity.start], sentence[quantity.end :]
            metric, reading, baseline = _metric(sentence, quantity), _reading(before, after), _baseline(after)
            place = min(3, 4 * i // max(1, len(sentences)))
            features = _features(quantity, before, after, metric, reading, baseline, place)
            confidence = 1.0 / (1.0 + math.exp(-sum(known.get(f, 0.0) for f in features)))
            claim = NumericClaim(
                metric=metric,
                low=quantity.low,
                high=quantity.high,
                unit=quantity.unit,
                reading=reading,
                baseline=baseline,
                text=_clause(sentence, quantity),
                confidence_frac=round(confidence, 3),
            )
            yield Candidate(claim=claim, features=features)


def _metric(sentence: str, quantity: Quantity) -> str:
    """The nearest word that can be measured, and whether it went down or up."""
    base = _nearest(_METRIC, sentence, quantity)
    name = base.lastgroup if base and base.lastgroup else "value"
    if quantity.unit not in ("ratio", "frac", "points", "orders_of_magnitude"):
        return name
    down, up = (_distance(_nearest(p, sentence, quantity), sentence, quantity) for p in (_DOWN, _UP))
    if name == "speedup":
        return "speedup"
    if min(down, up) == math.inf:
        return f"{name}_ratio" if quantity.unit == "ratio" else name
    return f"{name}_reduction" if down < up else f"{name}_ratio" if quantity.unit == "ratio" else f"{name}_gain"


def _nearest(pattern: re.Pattern[str], sentence: str, quantity: Quantity) -> re.Match[str] | None:
    """The word that is nearest to a number, if any is near."""
    start, end = max(0, quantity.start - NEAR_CHARACTERS), quantity.end + NEAR_CHARACTERS
    found = [(_distance(m, sentence, quantity), m) for m in pattern.finditer(sentence, start, end)]
    return min((f for f in found if f[0] <= NEAR_CHARACTERS), key=lambda f: f[0], default=(0.0, None))[1]


def _distance(found: re.Match[str] | None, sentence: str, quantity: Quantity) -> float:
    """Characters between a word and a number, more across a comma; inside it, none."""
    if found is None:
        return math.inf
    start, end = sorted((found.span(), (quantity.start, quantity.end)))
    between = sentence[start[1] : end[0]]
    return len(between) + COMMA_CHARACTERS * sum(between.count(mark) for mark in ",;")


def _reading(before: str, after: str) -> str:
    """Meaning of the number, by the words right before it."""
    if found := _READING.search(before[-40:]):
        return _READINGS[next(i for i in range(len(_READINGS)) if found[f"r{i}"])][0]
    return "mean" if _MEAN_AFTER.match(after) else "value"


def _baseline(after: str) -> str:
    """The baseline, as the sentence calls it."""
    found = _BASELINE.search(after[:200])
    return " ".join(found["what"].split()[:10]) if found else ""


def _clause(sentence: str, quantity: Quantity) -> str:
    """The words around a number, cut at spaces."""
    start, end = max(0, quantity.start - 70), min(len(sentence), quantity.end + 70)
    if start:
        start = sentence.find(" ", start, quantity.start) + 1 or quantity.start
    if end < len(sentence):
        end = max(sentence.rfind(" ", quantity.end, end), quantity.end)
    return sentence[start:end].strip()


def _features(
    quantity: Quantity, before: str, after: str, metric: str, reading: str, baseline: str, place: int
) -> tuple[str, ...]:
    """Features of a candidate claim."""
    left, right = words(before[-NEAR_CHARACTERS:])[-4:], words(after[:NEAR_CHARACTERS])[:4]
    near = {f"near:{word}" for word in (*left[-2:], *right[:2])}
    wide = {f"wide:{word}" for word in (*left, *right)}
    plain = {f"unit:{quantity.unit}", f"metric:{metric}", f"reading:{reading}", f"place:{place}", "always"}
    return tuple(sorted(near | wide | plain | ({"has:baseline"} if baseline else set[str]())))

"""What readers found in papers, in the units of the rules: the truth that `understanding.py` learns from."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.evidence.feed.entry import NumericClaim
from orrery.evidence.feed.text import title_id

SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "billion": 1e9, "t": 1e12, "trillion": 1e12}
PREFIXES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
TIMES_S = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
    "gpu hours": 3600.0,
    "gpu days": 86400.0,
}
SIMPLE = {
    "w": ("w", 1.0),
    "mw": ("w", 1e-3),
    "db": ("db", 1.0),
    "fps": ("frames_per_s", 1.0),
    "bits": ("bits", 1.0),
    "gbps": ("bytes_per_s", 1.25e8),
}
CLOSE_FRAC = 0.006


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A claim as a reader wrote it down."""

    low: float
    high: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper with what its readers say of it."""

    title: str
    abstract: str
    layer: str
    claims: tuple[Stated, ...]
    num_claims: int  # those too that are no number, or in a unit that the rules do not know


def labelled(read: Mapping[str, tuple[str, str]], labels: Sequence[Mapping[str, Any]]) -> list[Paper]:
    """The papers that are on the pages and in the list of labels."""
    papers: list[Paper] = []
    for label in labels:
        if (words := read.get(title_id(label["title"]))) is not None:
            stated = tuple(s for claim in label["claims"] if (s := _stated(claim)))
            papers.append(
                Paper(
                    title=words[0],
                    abstract=words[1],
                    layer=label["layer"],
                    claims=stated,
                    num_claims=len(label["claims"]),
                )
            )
    return papers


def matches(claim: NumericClaim, stated: Stated) -> bool:
    """The same unit, and the same number or range; or one end of it."""
    if claim.unit != stated.unit:
        return False
    ends = _close(claim.low, stated.low) and _close(claim.high, stated.high)
    is_end = claim.low == claim.high and (_close(claim.low, stated.low) or _close(claim.low, stated.high))
    return ends or is_end


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= CLOSE_FRAC * abs(other)


def _stated(claim: Mapping[str, Any]) -> Stated | None:
    unit = _unit(str(claim["unit"]).strip())
    values = claim["value"] if isinstance(claim["value"], list) else [claim["value"]]
    if unit is None or not values or not all(isinstance(v, int | float) for v in values):
        return None
    return Stated(low=min(values) * unit[1], high=max(values) * unit[1], unit=unit[0])


def _unit(words: str) -> tuple[str, float] | None:
    """The rules' name for a reader's unit, and what one of it is in SI."""
    text = words.lower()
    if re.match(r"%? ?points?$|% points?\b", text):
        return "points", 0.01
    if text.startswith("%"):
        return "frac", 0.01
    if re.match(r"x\b", text):
        return "ratio", 1.0
    if text.startswith("orders of mag"):
        return "orders_of_magnitude", 1.0
    if text in TIMES_S:
        return "s", TIMES_S[text]
    if text in SIMPLE:
        return SIMPLE[text]
    if found := re.match(r"([kmgtpe])flop", text):
        return "flops_per_s", PREFIXES[found[1]]
    if found := re.match(r"([kmgtp])i?b(/s)?$", text):
        return "bytes_per_s" if found[2] else "bytes", PREFIXES[found[1]]
    scale = 1.0
    if found := re.match(rf"({'|'.join(SCALES)})\b\s*", text):
        scale, text = SCALES[found[1]], text[found.end() :]
    for start, unit in (("param", "parameters"), ("tokens/s", "tokens_per_s"), ("token", "tokens")):
        if text.startswith(start):
            return unit, scale
    return ("devices", scale) if re.search(r"\b(?:gpu|npu|device|node|gcd|worker|server)s?\b", text) else None

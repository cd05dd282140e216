"""Knobs of techniques as people write them: ``policy.chunk_tokens=512``."""

import math
from collections.abc import Iterator, Sequence

from orrery.base.errors import ScenarioError
from orrery.scenario.amounts import amount

SEATS = ("policy", "queue", "router", "overlap", "transfer", "swap", "arrivals")
"""Settings of serving that name a technique, whose knobs are numbers."""

TRAIN_SEATS = ("offload", "tensor_overlap", "expert_overlap", "rl_placement")
"""Settings of training that name a technique; their knobs are numbers, words, and true or false."""


def check_knobs_written(texts: Sequence[str]) -> None:
    """Refuse what is no knob of any setting. ValueError says what to write."""
    for word, seat, name, text in _parts(texts):
        is_known = seat in SEATS or seat in TRAIN_SEATS
        if not is_known or not name or not text or (seat in SEATS and not math.isfinite(_number(name, text))):
            known = ", ".join((*SEATS, *TRAIN_SEATS))
            raise ValueError(f"{word!r} is no knob; write SETTING.NAME=NUMBER with one of {known}")


def read_knobs(texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Knobs of serving by setting and name; ScenarioError for one of training."""
    found: dict[str, dict[str, float]] = {seat: {} for seat in SEATS}
    for _, seat, name, text in _parts(texts):
        if seat not in SEATS:
            raise ScenarioError(f"knob: {seat}.{name} is of orrery train; leave it out.")
        found[seat][name] = _number(name, text)
    return found


def read_train_knobs(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """Knobs of training by setting and name, as they were written; ScenarioError for one of serving."""
    found: dict[str, dict[str, str]] = {seat: {} for seat in TRAIN_SEATS}
    for _, seat, name, text in _parts(texts):
        if seat not in TRAIN_SEATS:
            raise ScenarioError(f"knob: {seat}.{name} is of serving; leave it out.")
        found[seat][name] = text
    return found


def _parts(texts: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Each word as written, its setting, its name and its value."""
    for word in (w for t in texts for w in t.replace(",", " ").split()):
        where, _, text = word.partition("=")
        seat, _, name = where.partition(".")
        yield word, seat, name, text


def _number(name: str, text: str) -> float:
    """The value of a knob; not a number where it is none."""
    try:
        typed = amount(text, name)
        return float(text) if typed is None else typed
    except ValueError:
        return math.nan

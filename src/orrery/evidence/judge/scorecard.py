"""The checked-in scorecard of papers' claims: what was predicted when the file was last written.

It is a part of the accuracy file, one line a claim, written by ``orrery reproduce``. A prediction that moves by no more
than ``STILL_FRAC`` keeps its line while it is told in the same words, so that another processor's last digits change
nothing.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orrery.evidence.accuracy import ACCURACY, read_papers, write_papers
from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.judge.curve import Curve
from orrery.evidence.judge.run import PaperResult
from orrery.evidence.paper_file import Claim, Paper, get_paper
from orrery.evidence.prediction import reproduced_keys
from orrery.evidence.verdict import Verdict, verdict

STILL_FRAC = 0.001
"""A prediction moved by less has not moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Entry of one claim in the file."""

    predicted: float
    ratio: float | None
    verdict: Verdict
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """Predictions for each claim of each paper, and at each value of a paper's sweep."""

    papers: Mapping[str, Mapping[str, Scored]]
    curves: Mapping[str, "Drawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A curve as the file has it: which claim across which values, as text, and what was predicted there."""

    sweep: str
    predicted: tuple[float, ...]

    @staticmethod
    def of(curve: Curve) -> "Drawn":
        """Entry of a curve in the file."""
        values = ", ".join(f"{x:g}" if isinstance(x, float) else str(x) for x in curve.values)
        return Drawn(sweep=f"{curve.claim.id} across {curve.input}: {values}", predicted=curve.predicted)


@cache
def read_scorecard(path: Path = ACCURACY) -> Scorecard:
    """The file as it was last written."""
    papers, curves = read_papers(path)
    return Scorecard(
        papers={key: {claim: _scored(entry) for claim, entry in lines.items()} for key, lines in papers.items()},
        curves={key: Drawn(sweep=c["sweep"], predicted=tuple(map(float, c["predicted"]))) for key, c in curves.items()},
    )


def _scored(entry: Mapping[str, Any]) -> Scored:
    return Scored(
        predicted=float(entry["predicted"]),
        ratio=entry.get("ratio"),
        verdict=entry["verdict"],
        because=entry["because"],
    )


def recorded(keys: Iterable[str], card: Scorecard | None = None) -> tuple[ClaimResult, ...]:
    """The claims of those papers as the file has them, without running anything."""
    card = card or read_scorecard()
    return tuple(
        ClaimResult(
            paper=key,
            claim=claim,
            predicted=None if scored is None else scored.predicted,
            because=claim.missing if scored is None else scored.because,
        )
        for key in keys
        for claim in get_paper(key).claims
        for scored in [card.papers.get(key, {}).get(claim.id)]
    )


def recorded_curve(paper: Paper, card: Scorecard | None = None) -> Curve | None:
    """The paper's sweep as the file has it; None where it has none, or another one."""
    drawn = (card or read_scorecard()).curves.get(paper.key)
    if drawn is None or paper.sweep is None:
        return None
    curve = Curve.of(paper, drawn.predicted)
    return curve if Drawn.of(curve).sweep == drawn.sweep else None


def moved(judged: Iterable[ClaimResult], by_frac: float, card: Scorecard | None = None) -> tuple[str, ...]:
    """One sentence for each claim whose prediction is further than ``by_frac`` from the file's, or not in it."""
    card = card or read_scorecard()
    text: list[str] = []
    for j in judged:
        before = card.papers.get(j.paper, {}).get(j.claim.id)
        was = None if before is None else before.predicted
        if not _is_near(was, j.predicted, by_frac):
            text.append(f"{j.paper}/{j.claim.id}: {_word(was)} in the file, {_word(j.predicted)} now")
    return tuple(text)


def has_moved(key: str, curve: Curve | None, by_frac: float, card: Scorecard | None = None) -> bool:
    """Whether a paper's curve is further than ``by_frac`` from the file's anywhere."""
    was, now = (card or read_scorecard()).curves.get(key), Drawn.of(curve) if curve else None
    if was is None or now is None or was.sweep != now.sweep:
        return was is not now
    return not all(_is_near(a, b, by_frac) for a, b in zip(was.predicted, now.predicted, strict=True))


def write_scorecard(papers: Mapping[str, PaperResult], path: Path = ACCURACY) -> tuple[str, ...]:
    """Put these papers into the file, and drop papers and claims that no longer are; says what moved."""
    before = read_scorecard(path)
    text = moved((j for again in papers.values() for j in again.judged), STILL_FRAC, before)
    lines: dict[str, Mapping[str, Scored]] = dict(before.papers)
    curves = dict(before.curves)
    for key, again in papers.items():
        old = before.papers.get(key, {})
        lines[key] = {j.claim.id: _retained(old.get(j.claim.id), j) for j in again.judged if j.predicted is not None}
        if again.curve is None:
            curves.pop(key, None)
        elif has_moved(key, again.curve, STILL_FRAC, before):
            curves[key] = Drawn.of(again.curve)
    write_papers(_text(Scorecard(papers=lines, curves=curves)), path)
    read_scorecard.cache_clear()
    return text


NUMBER = re.compile(r"\d[\d.,]*(e[+-]?\d+)?")
"""A number in a sentence: its last digits differ from machine to machine."""


def _retained(before: Scored | None, now: ClaimResult) -> Scored:
    """The line as it stands, where nothing moved and its words are the same but for numbers."""
    assert now.predicted is not None
    word = verdict(now.claim, now.predicted)
    is_near = before and before.verdict == word and _is_near(before.predicted, now.predicted, STILL_FRAC)
    if before and is_near and NUMBER.sub("", before.because) == NUMBER.sub("", now.because):
        return before
    return Scored(predicted=now.predicted, ratio=now.ratio, verdict=word, because=now.because)


def _text(card: Scorecard) -> str:
    """One TOML table a paper, one line a claim, in the order of its file; then one line a curve."""
    known, out = set(reproduced_keys()), list[str]()
    for key in sorted(card.papers.keys() & known):
        lines = card.papers[key]
        out += ["", f"[papers.{key}]"]
        out += [_line(claim, lines[claim.id]) for claim in get_paper(key).claims if claim.id in lines]
    out += ["", "[curves]"]
    for key in sorted(card.curves.keys() & known):
        numbers = ", ".join(_toml(x) for x in card.curves[key].predicted)
        out.append(f"{key} = {{ sweep = {json.dumps(card.curves[key].sweep)}, predicted = [{numbers}] }}")
    return "\n".join([*out, ""])


def _line(claim: Claim, scored: Scored) -> str:
    ratio = "" if scored.ratio is None else f"ratio = {_toml(round(scored.ratio, 4))}, "
    because = json.dumps(scored.because, ensure_ascii=False)  # a JSON string is a TOML basic string
    numbers = f"predicted = {_toml(scored.predicted)}, {ratio}"
    return f'"{claim.id}" = {{ {numbers}verdict = "{scored.verdict}", because = {because} }}'


def _toml(value: float) -> str:
    """Six digits, as a TOML float."""
    return repr(float(f"{value:.6g}"))


def _is_near(was: float | None, now: float | None, frac: float) -> bool:
    if was is None or now is None:
        return was is now
    return math.isclose(was, now, rel_tol=frac, abs_tol=1e-9)


def _word(predicted: float | None) -> str:
    return "nothing" if predicted is None else f"{predicted:.6g}"

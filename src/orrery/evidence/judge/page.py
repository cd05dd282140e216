"""The page of the documentation on papers: what was reported, what comes out here, by layer and paper."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from orrery.evidence.amounts import amount
from orrery.evidence.judge.judged import Judged
from orrery.evidence.paper_file import Paper, get_paper
from orrery.evidence.verdict import Verdict

INTRO = """# Papers, run again

What papers on AI compute report, beside what orrery predicts for the set-ups that they state. Nothing is fitted to the
reported numbers: set-ups, with the place of every fact, are in `src/orrery_papers/KEY/paper.toml`, and what a paper
leaves open stands there under `[unstated]` with what is assumed for it. The predictions are computed by `predict.py`
beside it; `orrery reproduce --all` runs them all, writes this page and the scorecard that every change of the code is
held against (`src/orrery/evidence/accuracy.toml`).

*repeats*: within the claim's tolerance (20 % unless its file says otherwise) of the reported number or range; bounds
("at least", "less than") from their side only; of a reduction by more than half, what remains must be as near.
*misses*: outside; the last column says which input or mechanism explains it, as far as we know. *reported only*:
nothing here predicts it, and the list says what is missing.

![Predicted against reported, on logarithmic axes, one point a claim](papers.svg)
"""

SUMMARY = "| paper | fit | claims | repeats | misses | reported only |\n" + "|---" * 2 + "|---:" * 4 + "|"

HEAD = (
    "| claim | set-up | reported | predicted | ratio | verdict | how, and what explains a difference |\n"
    + "|---" * 7
    + "|"
)

VERDICTS: tuple[Verdict, ...] = ("repeats", "misses", "reported only")


def page(judged: Sequence[Judged], keys: Sequence[str]) -> str:
    """All papers by layer: how they fare together, one row each, then every claim."""
    claims: dict[str, list[Judged]] = {key: [] for key in keys}
    for j in judged:
        claims[j.paper].append(j)
    papers = {key: get_paper(key) for key in keys}
    layers = sorted({p.layer for p in papers.values()}, key=lambda layer: _order(layer, papers, claims))
    parts = [INTRO, totals(papers, claims), ""]
    for layer in layers:
        inside = [key for key in keys if papers[key].layer == layer]
        parts += [f"## {layer.capitalize()}", "", SUMMARY]
        parts += [_summary(papers[key], claims[key]) for key in inside]
        parts += ["", *(section(papers[key], claims[key]) for key in inside)]
    return "\n".join(parts)


def _order(layer: str, papers: Mapping[str, Paper], claims: Mapping[str, Sequence[Judged]]) -> tuple[int, str]:
    """Layers with most claims run again come first."""
    told = sum(j.predicted is not None for key, js in claims.items() if papers[key].layer == layer for j in js)
    return -told, layer


def totals(papers: Mapping[str, Paper], claims: Mapping[str, Sequence[Judged]]) -> str:
    """The library in three sentences."""
    count = Counter(j.verdict for js in claims.values() for j in js)
    core = [key for key, paper in papers.items() if paper.fit == "core"]
    again = [key for key in core if any(j.predicted is not None for j in claims[key])]
    repeat = [key for key in core if any(j.verdict == "repeats" for j in claims[key])]
    off = sorted(abs(j.ratio - 1.0) for js in claims.values() for j in js if j.ratio is not None)
    return (
        f"{len(papers)} papers make {sum(count.values()):,} claims: {count['repeats']} repeat, {count['misses']} miss, "
        f"{count['reported only']} are reported only. Of {len(core)} core papers {len(again)} are run again, and "
        f"{len(repeat)} have at least one claim that repeats. The median difference from what is reported is "
        f"{_percentile(off, 0.5):.1%}, the 90th percentile {_percentile(off, 0.9):.0%}."
    )


def _percentile(values: Sequence[float], frac: float) -> float:
    return values[min(len(values) - 1, int(frac * len(values)))] if values else math.nan


def _summary(paper: Paper, claims: Sequence[Judged]) -> str:
    count = Counter(j.verdict for j in claims)
    cells = (f"[{paper.key}](#{anchor(paper.title)})", paper.fit, len(claims), *(count[v] for v in VERDICTS))
    return f"| {' | '.join(map(str, cells))} |"


def anchor(title: str) -> str:
    """What a heading is linked by."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def section(paper: Paper, claims: Sequence[Judged]) -> str:
    """One paper: what it does, what came out, and what is missing."""
    told = [j for j in claims if j.predicted is not None]
    rest = [j for j in claims if j.predicted is None]
    out = [f"### {paper.title}", "", f"[{paper.year}]({paper.link}). {paper.mechanism}", ""]
    if paper.missing:
        out += [f"Not run again: {paper.missing}", ""]
    if told:
        out += [HEAD, *(_row(j) for j in told), ""]
    if rest:
        out += ["Reported only:", "", *(f"- `{j.claim.id}` ({reported(j)}): {j.because}" for j in rest), ""]
    return "\n".join(out)


def _row(j: Judged) -> str:
    assert j.predicted is not None
    cells = (
        f"`{j.claim.id}`" + (f" against {j.claim.baseline}" if j.claim.baseline else ""),
        j.claim.setup.name, f"{reported(j)} ({j.claim.at})", f"**{amount(j.predicted, j.claim.unit)}**",
        "" if j.ratio is None else f"{j.ratio:.2f}", j.verdict, j.because,
    )  # fmt: skip
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def reported(j: Judged) -> str:
    """What the paper says, with how it means it.

    A range has both ends; "up to" and its like stand before.
    """
    numbers = _once(amount(x, j.claim.unit) for x in (j.claim.low, j.claim.high))
    prefix = "" if j.claim.reading == "value" else f"{j.claim.reading} "
    return prefix + " to ".join(numbers)


def _once(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))

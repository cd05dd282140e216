"""The page of the documentation on papers: what was reported, what comes out here, by layer and paper."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from orrery.base.units import percent
from orrery.evidence.amounts import amount
from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.paper_file import Paper, get_paper
from orrery.evidence.verdict import VERDICTS, Verdict

INTRO = """# Reproduced papers

What papers on AI compute report, beside what orrery predicts for the set-ups that they state. Set-ups, with the place
of every fact, are in `src/orrery_papers/KEY/paper.toml`, and what a paper leaves open stands there under `[unstated]`
with what is assumed for it. The predictions are computed by `predict.py` beside it; `orrery reproduce --all` runs them
all, writes this page and the scorecard that every change of the code is held against
(`src/orrery/evidence/accuracy.toml`).

A verdict counts where it could have failed:

- *reproduced*: within a fifth of the reported number or range, and not so with the technique switched off (1.0x, 0 %).
  Of a speed-up the fifth is of the gain (2.0x is met from 1.8x to 2.2x), of a share above a half what
  remains to one must be as near, and bounds ("at least", "less than") have no tolerance. Where an assumption decides,
  all of its range must be met. Nothing is fitted to the reported numbers of these rows.
- *not reproduced*: outside; the last column says which input or mechanism explains it, as far as we know.

These could not have failed, and count for nothing:

- *no evidence*: met, and met with no effect too.
- *sign only*: the paper says which is better, not by how much, and so it comes out.
- *not counted*: an echo of an input, a definition, a count of a list, what holds by construction.
- *anchored*: clipped by, fitted to or worked out of the paper's own numbers.
- *not modeled*: nothing here predicts it, and the list says what is missing.

![Predicted against reported, on logarithmic axes, one point a claim](papers.svg)
"""

SUMMARY = f"| paper | fit | claims | {' | '.join(VERDICTS)} |\n" + "|---" * 2 + "|---:" * (1 + len(VERDICTS)) + "|"

COUNTED: tuple[Verdict, ...] = ("reproduced", "not reproduced")
"""Verdicts that could have failed."""

HEAD = (
    "| claim | set-up | reported | predicted | ratio | verdict | how, and what explains a difference |\n"
    + "|---" * 7
    + "|"
)


def page(judged: Sequence[ClaimResult], keys: Sequence[str]) -> str:
    """All papers by layer: how they fare together, one row each, then every claim."""
    claims: dict[str, list[ClaimResult]] = {key: [] for key in keys}
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


def _order(layer: str, papers: Mapping[str, Paper], claims: Mapping[str, Sequence[ClaimResult]]) -> tuple[int, str]:
    """Layers with most claims that are modeled come first."""
    with_prediction = sum(
        j.predicted is not None for key, js in claims.items() if papers[key].layer == layer for j in js
    )
    return -with_prediction, layer


def totals(papers: Mapping[str, Paper], claims: Mapping[str, Sequence[ClaimResult]]) -> str:
    """The library in five sentences; the papers that count come first."""
    count = Counter(j.verdict for js in claims.values() for j in js)
    core = [key for key, paper in papers.items() if paper.fit == "core"]
    tried = [key for key in papers if any(j.verdict in COUNTED for j in claims[key])]
    held = [key for key in papers if any(j.verdict == "reproduced" for j in claims[key])]
    counted = [j for js in claims.values() for j in js if j.verdict in COUNTED]
    off = sorted(abs(j.ratio - 1.0) for j in counted if j.ratio is not None)
    turned = sum(j.is_reversed for js in claims.values() for j in js)
    rest = ", ".join(f"{count[word]} {word}" for word in VERDICTS if word not in COUNTED)
    return (
        f"{len(held)} papers ({len(set(held) & set(core))} of {len(core)} core ones) have a verdict that could have "
        f"failed and did not, of {len(tried)} with a verdict that could have failed. {len(papers)} papers make "
        f"{sum(count.values()):,} claims: {count['reproduced']} are reproduced, {count['not reproduced']} are not, "
        f"{turned} of them the other way round (worse here what is better there, or the reverse); the others: {rest}. "
        f"The median difference of those that count is {percent(_percentile(off, 0.5), 1)}, the 90th "
        f"percentile {percent(_percentile(off, 0.9))}."
    )


def _percentile(values: Sequence[float], frac: float) -> float:
    return values[min(len(values) - 1, int(frac * len(values)))] if values else math.nan


def _summary(paper: Paper, claims: Sequence[ClaimResult]) -> str:
    count = Counter(j.verdict for j in claims)
    cells = (f"[{paper.key}](#{anchor(paper.title)})", paper.fit, len(claims), *(count[v] for v in VERDICTS))
    return f"| {' | '.join(map(str, cells))} |"


def anchor(title: str) -> str:
    """Anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def section(paper: Paper, claims: Sequence[ClaimResult]) -> str:
    """One paper: what it does, what came out, and what is missing."""
    with_prediction = [j for j in claims if j.predicted is not None]
    rest = [j for j in claims if j.predicted is None]
    out = [f"### {paper.title}", "", f"[{paper.year}]({paper.link}). {paper.mechanism}", ""]
    if paper.missing:
        out += [f"Not modeled: {paper.missing}", ""]
    if with_prediction:
        out += [HEAD, *(_row(j) for j in with_prediction), ""]
    if rest:
        out += ["Not modeled:", "", *(f"- `{j.claim.id}` ({reported(j)}): {j.because}" for j in rest), ""]
    return "\n".join(out)


def _row(j: ClaimResult) -> str:
    assert j.predicted is not None
    cells = (
        f"`{j.claim.id}`" + (f" against {j.claim.baseline}" if j.claim.baseline else ""),
        j.claim.setup.name,
        f"{reported(j)} ({j.claim.at})",
        f"**{predicted(j)}**",
        "" if j.ratio is None else f"{j.ratio:.2f}",
        j.verdict,
        j.why,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def predicted(j: ClaimResult) -> str:
    """The predicted number, and the range of an assumption that decides it; empty where nothing is predicted."""
    if j.predicted is None:
        return ""
    ends = " to ".join(_once(amount(x, j.claim.unit) for x in j.claim.assumed))
    return amount(j.predicted, j.claim.unit) + (f" ({ends})" if ends else "")


def reported(j: ClaimResult) -> str:
    """The reported number and its meaning.

    A range has both ends; "up to" and its like stand before.
    """
    numbers = _once(amount(x, j.claim.unit) for x in (j.claim.low, j.claim.high))
    prefix = "" if j.claim.reading == "value" else f"{j.claim.reading} "
    return prefix + " to ".join(numbers)


def _once(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))

"""Run the claims of papers again and write docs/papers.md.

python tools/papers.py                  # all papers that can be re-run
python tools/papers.py --only distserve # one of them; the other sections of the page stay
"""

import argparse
import math
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from orrery.evidence.paper_file import Claim, Paper, get_paper, paper_keys
from orrery.evidence.reproduce.prediction import Prediction, predict, reproduced_keys
from orrery.evidence.reproduce.verdict import EXPLAINED_BEYOND_FRAC, ratio, verdict

PAGE = Path(__file__).parent.parent / "docs" / "papers.md"

INTRO = """# Papers, run again

What papers on serving, training, memory, resilience, number formats and kernels report, beside what orrery predicts for
the set-ups that they state. Nothing is fitted to the reported numbers: set-ups, with the place of every fact, are in
`src/orrery/evidence/papers/`, and what a paper leaves open stands there under `[unstated]` with what is assumed for it.
The predictions are computed by `src/orrery/evidence/reproduce/`; `python tools/papers.py` writes this page.

*repeats*: within the claim's tolerance (20 % unless its file says otherwise) of the reported number or range; bounds
("at least", "less than") from their side only. *misses*: outside; the last column says which input or mechanism
explains it, as far as we know. *reported only*: nothing here predicts it.
"""

LAYERS = {
    "Serving": ("serving", "fleet"), "Training": ("training",), "Memory": ("memory",), "Resilience": ("resilience",),
    "Numerics": ("numerics", "survey"), "Kernels": ("kernels",), "Search": ("search",),
    "Predictors": ("predictors",),
}  # fmt: skip
"""Headings of the page, and the layers of papers that stand below them."""

SUMMARY = "| paper | layer | claims | repeats | misses | reported only |\n" + "|---" * 2 + "|---:" * 4 + "|"

HEAD = (
    "| claim | set-up | reported | predicted | ratio | verdict | how, and what explains a difference |\n"
    + "|---" * 7
    + "|"
)

WIDTH = 24
"""Of the progress bar."""


def main() -> None:
    """Predict, and write the page."""
    parser = argparse.ArgumentParser(description="Run the claims of papers again and write docs/papers.md.")
    parser.add_argument("--only", choices=reproduced_keys(), help="one paper")
    only = parser.parse_args().only
    keys = (only,) if only else reproduced_keys()
    sections = _written() if only else {}
    for i, key in enumerate(keys):
        sections[key] = _section(get_paper(key), f"{i + 1}/{len(keys)}")
    PAGE.write_text(_page({key: sections[key] for key in paper_keys() if key in sections}))
    print(f"wrote {PAGE}", file=sys.stderr)


def _page(sections: Mapping[str, str]) -> str:
    """Introduction, one row a paper, and the sections by layer."""
    placed = {
        heading: [key for key in sections if get_paper(key).layer in layers] for heading, layers in LAYERS.items()
    }
    if lost := sections.keys() - {key for keys in placed.values() for key in keys}:
        raise SystemExit(f"{', '.join(sorted(lost))}: layer is none of {', '.join(sum(LAYERS.values(), ()))}")
    counts = {key: _counts(text) for key, text in sections.items()}
    rows = [
        f"| [{key}](#{_anchor(get_paper(key).title)}) | {heading.lower()} | {' | '.join(map(str, counts[key]))} |"
        for heading, keys in placed.items() for key in keys
    ]  # fmt: skip
    total = " | ".join(f"**{sum(column)}**" for column in zip(*counts.values(), strict=True))
    parts = [INTRO, SUMMARY, *rows, f"| **all** | | {total} |", ""]
    for heading, keys in placed.items():
        if keys:
            parts += [f"<!-- layer-{heading.lower()} -->", f"## {heading}", "", *(sections[key] for key in keys)]
    return "\n".join(parts)


def _counts(section: str) -> tuple[int, int, int, int]:
    """Claims, repeats, misses and reported only, as a section says them."""
    told = re.search(r"(?m)^(\d+) of (\d+) repeat\.$", section)
    rest = re.search(r"(?m)^Reported only \((\d+)\)", section)
    repeats, predicted = (int(told[1]), int(told[2])) if told else (0, 0)
    only = int(rest[1]) if rest else 0
    return predicted + only, repeats, predicted - repeats, only


def _anchor(title: str) -> str:
    """What a heading is linked by."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _written() -> dict[str, str]:
    """The sections of the page as it stands, by the key in their first line."""
    if not PAGE.exists():
        return {}
    _, *parts = re.split(r"(?m)^(?=<!-- [a-z0-9-]+ -->$)", PAGE.read_text())
    return {part.split()[1]: part.rstrip("\n") + "\n" for part in parts}


def _section(paper: Paper, which: str) -> str:
    """One paper's claims; those that were predicted first."""
    start_s, found = time.perf_counter(), dict[str, Prediction]()
    for p in predict(paper):
        found[p.claim] = p
        _show(f"{which} {paper.key}", len(found) / len(paper.claims), time.perf_counter() - start_s)
    print(file=sys.stderr)
    if unknown := found.keys() - {c.id for c in paper.claims}:
        raise SystemExit(f"{paper.key}: predicts {', '.join(sorted(unknown))}, which the paper does not claim")
    told = [c for c in paper.claims if c.id in found]
    verdicts = [verdict(c, found[c.id].predicted) for c in told]
    if silent := [c.id for c, v in zip(told, verdicts, strict=True) if v == "misses" and not found[c.id].differs]:
        raise SystemExit(f"{paper.key}: misses {', '.join(silent)}, and says nothing of why")
    rest = [c.id for c in paper.claims if c.id not in found]
    return "\n".join([
        f"<!-- {paper.key} -->", f"### {paper.title}", "",
        f"[{paper.year}]({paper.url}). {paper.mechanism}", "",
        f"{verdicts.count('repeats')} of {len(told)} repeat.", "", HEAD,
        *(_row(c, found[c.id]) for c in told), "",
        *([f"Reported only ({len(rest)}): {', '.join(rest)}.", ""] if rest else []),
    ])  # fmt: skip


def _row(claim: Claim, found: Prediction) -> str:
    off, said = ratio(claim, found.predicted), verdict(claim, found.predicted)
    why = found.because
    if found.differs and (said == "misses" or abs(off - 1.0) > EXPLAINED_BEYOND_FRAC):
        why = f"{why}. Differs by {found.differs}"
    cells = (
        f"`{claim.id}`" + (f" against {claim.baseline}" if claim.baseline else ""),
        claim.setup.name, _reported(claim), f"**{_number(found.predicted, claim.unit)}**",
        "" if math.isnan(off) else f"{off:.2f}", said, why,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _reported(claim: Claim) -> str:
    numbers = [_number(x, claim.unit) for x in dict.fromkeys((claim.low, claim.high))]
    prefix = "" if claim.reading == "value" else f"{claim.reading} "
    return f"{prefix}{' to '.join(numbers)} ({claim.at})"


def _number(value: float, unit: str) -> str:
    """With the unit where it is more than a ratio."""
    if unit == "frac":
        return f"{100.0 * value:.3g} %"
    shown = f"{value:.3g}" if abs(value) < 1e5 else f"{value:.3e}"
    return shown if unit == "ratio" else f"{shown} {unit.replace('_per_', '/').replace('_', ' ')}"


def _show(what: str, done_frac: float, elapsed_s: float) -> None:
    full = round(WIDTH * done_frac)
    print(f"\r{what:32} [{'#' * full}{'.' * (WIDTH - full)}] {elapsed_s:5.0f} s", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

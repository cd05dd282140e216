"""Run the claims of papers again and write docs/papers.md.

python tools/papers.py                  # all papers that can be re-run
python tools/papers.py --only distserve # one of them; the other sections of the page stay
"""

import argparse
import math
import re
import sys
import time
from pathlib import Path

from orrery.evidence.paper_file import Claim, Paper, get_paper, paper_keys
from orrery.evidence.reproduce.prediction import Prediction, predict, reproduced_keys
from orrery.evidence.reproduce.verdict import EXPLAINED_BEYOND_FRAC, ratio, verdict

PAGE = Path(__file__).parent.parent / "docs" / "papers.md"

INTRO = """# Papers, run again

What papers on LLM serving report, beside what orrery predicts for the set-ups that they state. Nothing is fitted to
the reported numbers: set-ups, with the place of every fact, are in `src/orrery/evidence/papers/`, and what a paper
leaves open stands there under `[unstated]` with what is assumed for it. The predictions are computed by
`src/orrery/evidence/reproduce/`; `python tools/papers.py` writes this page.

*repeats*: within the claim's tolerance (20 % unless its file says otherwise) of the reported number or range; bounds
("at least", "less than") from their side only. *misses*: outside; the last column says which input or mechanism
explains it, as far as we know. *reported only*: nothing here predicts it.
"""

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
    known = [key for key in paper_keys() if key in sections]
    PAGE.write_text("\n".join([INTRO, *(sections[key] for key in known)]))
    print(f"wrote {PAGE}", file=sys.stderr)


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
    rest = [c.id for c in paper.claims if c.id not in found]
    return "\n".join([
        f"<!-- {paper.key} -->", f"## {paper.title}", "",
        f"[{paper.year}]({paper.url}). {paper.mechanism}", "",
        f"{verdicts.count('repeats')} of {len(told)} repeat.", "", HEAD,
        *(_row(c, found[c.id]) for c in told), "",
        *([f"Reported only ({len(rest)}): {', '.join(rest)}.", ""] if rest else []),
    ])  # fmt: skip


def _row(claim: Claim, found: Prediction) -> str:
    off = ratio(claim, found.predicted)
    why = found.because
    if found.differs and (math.isnan(off) or abs(off - 1.0) > EXPLAINED_BEYOND_FRAC):
        why = f"{why}. Differs by {found.differs}"
    cells = (
        f"`{claim.id}`" + (f" against {claim.baseline}" if claim.baseline else ""),
        claim.setup.name, _reported(claim), f"**{_number(found.predicted, claim.unit)}**",
        "" if math.isnan(off) else f"{off:.2f}", verdict(claim, found.predicted), why,
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

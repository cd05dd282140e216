"""Files written by a rerun in a source checkout: the scorecard, the page and the picture of the documentation."""

import re
from collections.abc import Mapping
from pathlib import Path

from orrery.base.files import write_atomically
from orrery.evidence.accuracy import ACCURACY
from orrery.evidence.judge.page import page
from orrery.evidence.judge.plot import draw
from orrery.evidence.judge.run import PaperResult
from orrery.evidence.judge.scorecard import recorded, write_scorecard
from orrery.evidence.paper_file import paper_keys

ROOT = Path(__file__).parents[4]

HELD = re.compile(
    r"\d+(?=\s+papers\s+(?:\([^)]*\)\s+)?have\s+a\s+verdict\s+that\s+could\s+have\s+failed\s+and\s+did\s+not)"
)
"""The number of papers whose claims held, in the sentence that the page and the README share."""


def is_checkout(root: Path = ROOT) -> bool:
    """Whether the package runs from its sources, where the scorecard and the page are kept."""
    return (root / "docs" / "papers.md").is_file() and ACCURACY.is_relative_to(root / "src")


def publish(papers: Mapping[str, PaperResult], root: Path = ROOT) -> tuple[str, ...]:
    """Write the scorecard with these papers, then the page and the picture of all and the README's count; says what
    moved."""
    text = write_scorecard(papers)
    keys = paper_keys()
    everything = recorded(keys)
    written, readme = page(everything, keys), root / "README.md"
    write_atomically(root / "docs" / "papers.md", written)
    if (held := HELD.search(written)) and readme.is_file():
        write_atomically(readme, HELD.sub(held[0], readme.read_text(encoding="utf-8")))
    write_atomically(root / "docs" / "papers.svg", draw(everything))
    return text

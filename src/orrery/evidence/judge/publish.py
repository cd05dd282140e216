"""Files written by a rerun in a source checkout: the scorecard, the page and the picture of the documentation."""

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


def is_checkout(root: Path = ROOT) -> bool:
    """Whether the package runs from its sources, where the scorecard and the page are kept."""
    return (root / "docs" / "papers.md").is_file() and ACCURACY.is_relative_to(root / "src")


def publish(papers: Mapping[str, PaperResult], root: Path = ROOT) -> tuple[str, ...]:
    """Write the scorecard with these papers, then the page and the picture of all; says what moved."""
    text = write_scorecard(papers)
    keys = paper_keys()
    everything = recorded(keys)
    write_atomically(root / "docs" / "papers.md", page(everything, keys))
    write_atomically(root / "docs" / "papers.svg", draw(everything))
    return text

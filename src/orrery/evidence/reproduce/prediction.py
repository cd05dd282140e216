"""What the house says about a claim, before it is held against what the paper reports."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from orrery.evidence.paper_file import Paper, paper_keys

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One claim re-run: the number in the claim's own unit, and the set-up and mechanism behind it."""

    claim: str  # its id in the paper's file
    predicted: float
    because: str
    differs: str = ""  # which input or mechanism explains a difference from what the paper reports


def reproduced_keys() -> tuple[str, ...]:
    """Papers that are re-run: those with a file here that is called like them."""
    return tuple(key for key in paper_keys() if (FOLDER / f"{_module(key)}.py").exists())


def predict(paper: Paper) -> Iterator[Prediction]:
    """Every claim of a paper that the house can re-run, as it is computed."""
    yield from import_module(f"orrery.evidence.reproduce.{_module(paper.key)}").predict(paper)


def _module(key: str) -> str:
    return key.replace("-", "_")

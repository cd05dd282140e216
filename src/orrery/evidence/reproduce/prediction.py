"""What the house says about a claim, before it is held against what the paper reports."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from orrery.evidence.paper_file import Paper, paper_keys

FOLDER = Path(__file__).parent
PACKAGE = "orrery.evidence.reproduce"

NOT_MECHANISMS = ("base", "catalog", "evidence", "scenario")
"""Floors that hold names, facts and doors, and no mechanism."""

IMPORT = re.compile(r"^ *from (orrery\.[\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)
NAME = re.compile(r"\w+")


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


def modules_behind(key: str) -> tuple[str, ...]:
    """The modules of the house that a paper's reproduction imports, itself or through files beside it; sorted."""
    return tuple(sorted(_imported(_module(key), set())))


def _imported(name: str, seen: set[str]) -> set[str]:
    """Modules below this floor that one file of this folder, and those of this folder that it imports, import."""
    path = FOLDER / f"{name}.py"
    if name in seen or not path.exists():
        return set()
    seen.add(name)
    found = set[str]()
    for module, names in IMPORT.findall(path.read_text(encoding="utf-8")):
        if module.startswith(PACKAGE):
            inner = [module.removeprefix(PACKAGE).lstrip("."), *NAME.findall(names)]
            found |= set[str]().union(*(_imported(part, seen) for part in inner if part))
        elif module.split(".")[1] not in NOT_MECHANISMS:
            found.add(module)
    return found


def _module(key: str) -> str:
    return key.replace("-", "_")

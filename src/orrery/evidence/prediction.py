"""A prediction for a claim, before it is compared with the paper's number, and the place of its code.

A paper is one folder of the package ``orrery_papers``: ``paper.toml``, which comes with orrery, and ``predict.py``,
which comes with the distribution ``orrery-ai-papers``. Nothing here imports that distribution unless it is used.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock

from orrery.base.errors import OrreryError
from orrery.evidence.library import PACKAGE, folder_name
from orrery.evidence.paper_file import Paper, paper_keys

NOT_MECHANISMS = ("base", "catalog", "evidence", "scenario")
"""Packages that hold names, facts and doors, and no mechanism."""

_PARSER = Lock()
"""Held while a source is parsed: before Python 3.11.9 two threads that parse at once can break each other's parse."""


class NotInstalled(OrreryError):
    """The predictions are a distribution of their own, which is not here."""

    def __init__(self) -> None:
        super().__init__("The predictions of papers are a package of their own: pip install 'orrery-ai[papers]'.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The predicted number of one claim, in the claim's own unit, and the set-up and mechanism behind it."""

    claim: str  # its id in the paper's file
    predicted: float
    because: str
    differs: str = ""  # which input or mechanism explains a difference from what the paper reports


def has_predictions() -> bool:
    """Whether the distribution with the predictions is installed; the papers' texts alone are no such package."""
    spec = find_spec(PACKAGE)
    return spec is not None and spec.origin is not None


@cache
def reproduced_keys() -> tuple[str, ...]:
    """Papers with predictions: those whose folder has a ``predict`` module; none without their distribution."""
    if not has_predictions():
        return ()
    return tuple(key for key in paper_keys() if find_spec(_module(key)))


def predict(paper: Paper) -> Iterator[Prediction]:
    """Every claim of a paper that orrery can predict, as it is computed."""
    if not has_predictions():
        raise NotInstalled
    yield from import_module(_module(paper.key)).predict(paper)


def modules_behind(key: str) -> tuple[str, ...]:
    """The modules of orrery that a paper's prediction imports, itself or through its own package; sorted."""
    return tuple(sorted(_mechanisms(_module(key), set()))) if key in reproduced_keys() else ()


def _mechanisms(name: str, seen: set[str]) -> set[str]:
    """Modules of orrery that one module of the papers' package imports, and those of that package that it imports."""
    if name in seen:
        return set()
    seen.add(name)
    found = set[str]()
    for module in _imported(name):
        if module.startswith(f"{PACKAGE}."):
            found |= _mechanisms(module, seen)
        elif module.startswith("orrery.") and module.split(".")[1] not in NOT_MECHANISMS:
            found.add(module)
    return found


@cache
def _imported(name: str) -> tuple[str, ...]:
    """Modules that the import statements of a module name, and those taken from a package of papers."""
    spec = find_spec(name)
    source = getattr(spec.loader, "get_source", None) if spec else None
    with _PARSER:
        tree = ast.parse(source(name) or "" if source else "")
    taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return tuple(module for node in taken for module in _modules_of(node.module or "", node.names))


def _modules_of(package: str, names: Iterable[ast.alias]) -> Iterator[str]:
    """Modules that one import statement names: the package, and of a package of papers what is taken from it."""
    yield package
    if package.startswith(PACKAGE):
        yield from (f"{package}.{alias.name}" for alias in names if _is_module(package, alias.name))


def _is_module(package: str, name: str) -> bool:
    """Whether a name that is imported from a package is a module of it."""
    spec = find_spec(package)
    return bool(spec and spec.submodule_search_locations) and find_spec(f"{package}.{name}") is not None


def _module(key: str) -> str:
    return f"{PACKAGE}.{folder_name(key)}.predict"

"""Papers run again beside each other on all cores; what is finished is kept, so that a stopped run goes on."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from platformdirs import user_cache_dir

from orrery.base.errors import OrreryError
from orrery.base.tasks import LostTask, results
from orrery.evidence.judge.claim_result import ClaimResult, judge
from orrery.evidence.judge.curve import Curve, across
from orrery.evidence.library import FOLDER
from orrery.evidence.paper_file import get_paper

JOURNAL = Path(user_cache_dir("orrery", appauthor=False)) / "reproduce.jsonl"
"""Where the command line keeps what is finished."""

Progress = Callable[[int, int], None]
"""Told (done, total), in papers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperResult:
    """One paper, run again: its claims and, where its file has a sweep, the curve."""

    judged: tuple[ClaimResult, ...]
    curve: Curve | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproductionRun:
    """The papers that ran, in their order, and the papers that failed with the reason."""

    papers: Mapping[str, PaperResult]
    failed: Mapping[str, str]
    num_resumed: int  # papers whose results an earlier run had left

    @property
    def judged(self) -> tuple[ClaimResult, ...]:
        """All claims, paper by paper."""
        return tuple(j for again in self.papers.values() for j in again.judged)


def rerun(
    keys: Sequence[str],
    *,
    num_workers: int = 0,
    journal: Path | None = None,
    progress: Progress = lambda d, t: None,
    ray: str = "",
) -> ReproductionRun:
    """Judge the claims of those papers, a paper a task.

    ``num_workers`` 0: one a core; 1: in this process; ``ray`` is the address of a cluster to run on instead. Papers
    that a ``journal`` holds of the same code are not run again, and each paper is added to it as it is finished. A
    paper that fails does not stop the others.
    """
    left = dict(_finished(journal, keys)) if journal else {}
    found, failed = dict(left), dict[str, str]()
    progress(len(found), len(keys))
    with _Journal(journal) as write:
        for key, outcome in _outcomes([key for key in keys if key not in left], num_workers, ray):
            if isinstance(outcome, str):
                failed[key] = outcome
            else:
                found[key] = outcome
                write(key, outcome)
            progress(len(found) + len(failed), len(keys))
    return ReproductionRun(
        papers={key: found[key] for key in keys if key in found}, failed=failed, num_resumed=len(left)
    )


def _outcomes(keys: Sequence[str], num_workers: int, ray: str) -> Iterator[tuple[str, PaperResult | str]]:
    """Yield each paper as it is finished, or what went wrong with it."""
    num_workers = min(num_workers or os.cpu_count() or 1, len(keys))
    if num_workers <= 1 and not ray:
        for key in keys:
            yield key, _outcome(key)
        return
    for key, found in results(_outcome, {key: (key,) for key in keys}, jobs=num_workers, ray=ray):
        yield key, f"{found.kind}: {found.message}" if isinstance(found, LostTask) else found


def _outcome(key: str) -> PaperResult | str:
    """A paper's claims and curve; what a mechanism could not take is said, not raised."""
    try:
        paper = get_paper(key)
        return PaperResult(judged=judge(paper), curve=across(paper) if paper.sweep else None)
    except (OrreryError, ArithmeticError, LookupError, ValueError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"


class _Journal:
    """Appends a finished paper as one line, safely on disk before the next; nothing where there is no path."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file = None

    def __enter__(self) -> Callable[[str, PaperResult], None]:
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a", encoding="utf-8")
            if _is_torn(self._path):
                self._file.write("\n")  # what was cut short ends here, or it would swallow the next line
        return self._write

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def _write(self, key: str, again: PaperResult) -> None:
        if self._file:
            found = [[j.claim.id, j.predicted, j.because] for j in again.judged]
            curve = again.curve.predicted if again.curve else None
            line = {"code": fingerprint(), "paper": key, "found": found, "curve": curve}
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())


def _finished(journal: Path, keys: Sequence[str]) -> Iterator[tuple[str, PaperResult]]:
    """Results of this code in the journal, by paper; a line cut short by a crash is passed over."""
    if not journal.exists():
        return
    chosen_keys, code = set(keys), fingerprint()
    with journal.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if found := _read(line, code):
                key, again = found
                if key in chosen_keys:
                    yield key, again


def _read(line: str, code: str) -> tuple[str, PaperResult] | None:
    """A paper's key and results; None for a line that is damaged, or of other code."""
    try:
        found: Any = json.loads(line)
        entry = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        return (str(entry["paper"]), _again(entry)) if entry.get("code") == code else None
    except (ValueError, TypeError, LookupError, RecursionError, OrreryError):
        return None


def _is_torn(path: Path) -> bool:
    """Whether a file ends in the middle of a line."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _again(entry: Mapping[str, Any]) -> PaperResult:
    """A paper from its line of the journal."""
    paper = get_paper(entry["paper"])
    claims = {claim.id: claim for claim in paper.claims}
    judged = tuple(
        ClaimResult(paper=paper.key, claim=claims[claim], predicted=predicted, because=because)
        for claim, predicted, because in entry["found"]
    )
    return PaperResult(judged=judged, curve=Curve.of(paper, entry["curve"]) if entry["curve"] else None)


def fingerprint() -> str:
    """Fingerprint of what results depend on: the files of orrery and of its papers, by name, size and mtime."""
    roots = (Path(__file__).parents[2], FOLDER)
    files = sorted(
        path for root in roots for path in root.rglob("*") if path.suffix in (".py", ".toml", ".npz", ".csv")
    )
    facts = [
        (str(f.relative_to(roots[0].parent)), f.stat().st_size, f.stat().st_mtime_ns)
        for f in files
        if f.name != "accuracy.toml"
    ]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

"""Runs of a user's own FP4 method, and the effective shares of parameters and tokens that they say."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_text, user_path
from orrery.base.user_text import csv_table
from orrery.numerics.laws import quartet

Runs = list[tuple[float, float, float]]

NUMBERS = ("parameters", "tokens", "loss")
PASS = "fp4"
PASSES: Mapping[str, quartet.Share] = {"forward": "parameters", "backward": "tokens"}
"""Which pass alone was in FP4 -> what then counts in part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """An effective share, from how many runs, and how far the law is then from the worst of them."""

    share: float
    num_runs: int
    worst_frac: float

    @property
    def is_at_an_end(self) -> bool:
        """Whether no share in the range explains the runs."""
        return not quartet.MIN_SHARE * 1.001 < self.share < quartet.MAX_SHARE / 1.001


def fitted_shares(text: str) -> dict[str, Fitted]:
    """The shares that a table of runs says, ``parameters_frac`` and ``tokens_frac``, as far as it has runs for them."""
    runs = read_runs(user_path(text))
    return {f"{PASSES[which]}_frac": _fitted(found, PASSES[which]) for which, found in runs.items() if found}


def _fitted(runs: Runs, of: quartet.Share) -> Fitted:
    share = quartet.fitted_frac(runs, of)
    fracs = (share, 1.0) if of == "parameters" else (1.0, share)
    errors = [abs(float(quartet.loss(size, tokens, *fracs)) / seen - 1.0) for size, tokens, seen in runs]
    return Fitted(share=share, num_runs=len(runs), worst_frac=max(errors))


def read_runs(path: Path) -> dict[str, Runs]:
    """The runs (parameters, tokens, loss) of a CSV table, by the pass that was in FP4."""
    header, rows = csv_table(read_user_text(path, "CSV table of runs"), path.name)
    expected = (*NUMBERS, PASS)
    if set(header) != set(expected):
        raise ScenarioError(f"{path.name}: columns are {', '.join(header)}; write {', '.join(expected)}.")
    found: dict[str, Runs] = {which: [] for which in PASSES}
    for number, cells in enumerate(rows, start=2):
        row = dict(zip(header, cells, strict=True))
        if row[PASS] not in found:
            raise ScenarioError(
                f"{path.name}, row {number}: {PASS}: got {row[PASS]!r}; write the pass that alone was in FP4, "
                "forward or backward."
            )
        size, tokens, loss = (_number(row[name], f"{path.name}, row {number}: {name}") for name in NUMBERS)
        found[row[PASS]].append((size, tokens, loss))
    if not any(found.values()):
        raise ScenarioError(f"{path.name}: lists no run; write a line for each.")
    return found


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < inf:
        raise ScenarioError(f"{where}: got {text!r}; write a number above 0.")
    return value

"""Whether a table can be read at all: the right columns, in the right units, every row of a known kind."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError, nearest
from orrery.evidence.metrics import METRICS, NEEDED, OUTCOME_COLUMNS, likest, measured_columns, mistaken_for
from orrery.evidence.tables import KINDS, Table


def kinds_of(table: Table) -> NDArray[np.str_]:
    """The kind of every row; refuses a table that does not say it."""
    if "kind" not in table.columns:
        raise ScenarioError(
            f"{table.name}: has no column kind (its columns: {_listed(list(table.columns))}); "
            f"add one that says {', '.join(KINDS[:-1])} or {KINDS[-1]} in every row. Serving rows also need "
            f"{', '.join(NEEDED['serving'])}, lengths, and a measurement such as tpot_s."
        )
    kinds = table.words("kind")
    for row, kind in enumerate(kinds.tolist()):
        if kind not in KINDS:
            raise ScenarioError(
                f"{table.name}, row {row + 2}, column kind: {kind!r} is none of {', '.join(KINDS)}; write one of them."
            )
    return kinds


def check_columns(table: Table, kinds: NDArray[np.str_]) -> None:
    """Refuse a table with a measurement in another unit, or without a column that every row of its kind needs."""
    present = list(table.columns)
    for kind in sorted(set(kinds.tolist())):
        for column in present:
            if (meant := mistaken_for(column, kind)) and meant[0] not in present:
                raise ScenarioError(
                    f"{table.name}: column {column!r} looks like {meant[0]}, which must be {meant[1]}; "
                    f"convert it and name the column {meant[0]}."
                )
        if not states_anything(table, kind):
            continue
        for column in NEEDED[kind]:
            if column not in present:
                found = f"; the nearest column is {near!r}" if (near := likest(column, present)) else ""
                raise ScenarioError(
                    f"{table.name}: rows of kind {kind} need a column {column}{found} "
                    f"(needed: {', '.join(NEEDED[kind])}; measured: any of {', '.join(METRICS[kind])})."
                )

    if len(table) and not any(states_anything(table, kind) for kind in sorted(set(kinds.tolist()))):
        raise ScenarioError(_no_measurement(table, sorted(set(kinds.tolist()))[0]))


def _no_measurement(table: Table, kind: str) -> str:
    """The message for a table in which nothing was measured."""
    near = next((f"; {c!r} looks like {m}" for m in METRICS[kind] if (c := likest(m, table.columns))), "")
    return (
        f"{table.name}: no column holds a measurement{near} (rows of kind {kind} may state: "
        f"{', '.join(METRICS[kind])}); name one of them so."
    )


def states_anything(table: Table, kind: str) -> bool:
    """Whether a table has a column that measures something, or one that says how a run ended."""
    return bool(measured_columns(kind, list(table.columns))) or any(c in table.columns for c in OUTCOME_COLUMNS)


def check_known(flag: str, columns: Sequence[str], tables: Sequence[Table], made: Sequence[str]) -> None:
    """Refuse a column that no table has and that is not made either, with the nearest known one."""
    known = list(dict.fromkeys((*(c for t in tables for c in t.columns), *made)))
    for column in columns:
        if column not in known:
            near = nearest(column, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the columns are {_listed(known)}."
            raise ScenarioError(f"{flag}: no table has a column {column!r}; {hint}")


def _listed(columns: list[str], most: int = 12) -> str:
    """The first columns of a list, and how many more there are."""
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return ", ".join(columns[:most]) + more

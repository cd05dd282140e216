"""Tables of what an estimate's techniques do: where experts lie, draft trees, kept positions, many calls an answer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from orrery.scenario.ask import Answer
from orrery.scenario.show import Table

TITLES = {
    "expert_placement": "Where experts lie",
    "draft": "The draft tree",
    "kv_selection": "Positions of a prompt that stay cached",
}
"""Parts of an answer that are tables of their own, by their keys in JSON."""

PARTS = {"tried": "Trees that were tried", "verifying": "Ways to verify a tree"}
"""Lists of such a part that are tables as well."""

MAX_LISTED = 12
"""Numbers that stand in one cell."""


def technique_tables(answer: Answer) -> tuple[Table, ...]:
    """The tables, from what ``--json`` says; none where no technique has figures of its own."""
    plain = answer.to_json()
    found = plain | plain["deployment"]
    found_tables = [
        table for key, title in TITLES.items() if key in found for table in _of_part(key, title, found[key])
    ]
    return (*found_tables, *(_of_answer(plain["answer"]) if "answer" in plain else ()))


def _of_part(key: str, title: str, part: Mapping[str, Any]) -> Iterator[Table]:
    yield Table(kind=key, title=title, rows=(_single(part),))
    for name, words in PARTS.items():
        if rows := part.get(name):
            yield Table(kind=name, title=words, rows=tuple(map(_single, rows)))


def _of_answer(answer: Mapping[str, Any]) -> Iterator[Table]:
    """One answer out of many calls: its ways, what was studied of them, and what a budget buys."""
    yield Table(kind="ways", title=f"One answer by {answer['reasoning']}", rows=_rows(answer["ways"]))
    for name, study in answer.get("studies", {}).items():
        title = name.replace("_", " ").capitalize()
        yield Table(kind=name, title=title, rows=_rows(study["rows"]) or (_single(study),))
    if budget := answer.get("budget"):
        yield Table(
            kind="budget",
            title=f"What ${budget['budget_usd']:g} an answer buy, the best first",
            rows=_rows(budget["ranked"]),
            notes=() if budget["ranked"] else (f"Nothing: the cheapest way costs ${budget['cheapest_usd']:.3g}.",),
        )


def _rows(rows: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    return tuple(map(_single, rows))


def _single(part: Mapping[str, Any]) -> dict[str, Any]:
    """Its single figures: short lists of numbers in a line, shares by name each in a column, the rest left out."""
    found: dict[str, Any] = {}
    for name, value in part.items():
        if isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value)
            if name.endswith("_fracs"):
                found |= {f"{name.removesuffix('s')} of {key}": one for key, one in named.items()}
        elif isinstance(value, list | tuple):
            listed = cast("Sequence[Any]", value)
            if 0 < len(listed) <= MAX_LISTED and all(isinstance(one, int | float) for one in listed):
                found[name] = ", ".join(f"{one:.4g}" for one in listed)
        else:
            found[name] = value
    return found

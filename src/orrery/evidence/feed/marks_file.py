"""Marks of a reader in a file: what ``orrery papers mark --json`` prints, read back into any library."""

import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

from orrery.base.user_file import read_user_text
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.lists import PaperList, checked_name
from orrery.evidence.feed.marks import FOLLOWED, Marks

MAX_MARKS, MAX_LETTERS = 50_000, 500
"""Limits of one list, and of one of its names."""

KEYS = ("read", "upvoted", "titles", "follows", "lists")


def marks_json(marks: Marks) -> dict[str, Any]:
    """The marks as plain data."""
    return {
        "read": sorted(marks.read),
        "upvoted": sorted(marks.upvoted),
        "follows": {"layer": marks.layers, "technique": marks.techniques, "words": marks.words},
        "lists": {one.name: {id: day.isoformat() for id, day in one.papers} for one in marks.lists},
    }


def read_marks_file(path: Path) -> Marks:
    """The marks of a file. Refuses what is not in the form that is printed."""
    text = read_user_text(path, "file of marks (JSON)", error=FeedError)
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise FeedError(f"{path.name}: is no JSON ({error}); write it with orrery papers mark --json.") from None
    if not isinstance(raw, dict):
        raise FeedError(f"{path.name}: is no table of marks; write it with orrery papers mark --json.")
    table = cast("dict[str, Any]", raw)
    if unknown := sorted(table.keys() - set(KEYS)):
        raise FeedError(f"{path.name}: unknown key {', '.join(unknown)}; known: {', '.join(KEYS)}.")
    follows = table.get("follows", {})
    if not isinstance(follows, dict) or set(cast("dict[str, Any]", follows)) - set(FOLLOWED):
        raise FeedError(f"{path.name}: follows: write a list each for {', '.join(FOLLOWED)}.")
    lists = {name: _names(path, name, table.get(name, [])) for name in ("read", "upvoted")}
    followed = {
        kind: _names(path, f"follows.{kind}", cast("dict[str, Any]", follows).get(kind, [])) for kind in FOLLOWED
    }
    return Marks(
        read=frozenset(lists["read"]),
        upvoted=frozenset(lists["upvoted"]),
        layers=followed["layer"],
        techniques=followed["technique"],
        words=followed["words"],
        lists=tuple(_lists(path, table.get("lists", {}))),
    )


def _lists(path: Path, found: object) -> Iterator[PaperList]:
    """Lists as they stand in the file: a name, and the day on which each paper was added."""
    if not isinstance(found, dict):
        raise FeedError(f"{path.name}: lists: got {json.dumps(found)[:60]}; write a table of lists.")
    for name, papers in cast("dict[str, Any]", found).items():
        if not isinstance(papers, dict):
            raise FeedError(f"{path.name}: lists.{name[:60]}: write a table: a paper, and the day it was added.")
        days = cast("dict[str, Any]", papers)
        ids = _names(path, f"lists.{name[:60]}", list(days))
        yield PaperList(name=checked_name(name), papers=tuple((id, _day(path, days[id])) for id in ids))


def _day(path: Path, found: object) -> date:
    try:
        return date.fromisoformat(str(found))
    except ValueError:
        raise FeedError(f"{path.name}: lists: got {json.dumps(found)[:60]}; write a day such as 2026-11-22.") from None


def _names(path: Path, name: str, found: object) -> tuple[str, ...]:
    """A list of names as it stands in the file."""
    names = cast("Sequence[Any]", found) if isinstance(found, list) else None
    if names is None or not all(isinstance(one, str) and one.strip() and len(one) <= MAX_LETTERS for one in names):
        raise FeedError(f"{path.name}: {name}: got {json.dumps(found)[:60]}; write a list of names in quotes.")
    if len(names) > MAX_MARKS:
        raise FeedError(f"{path.name}: {name}: has {len(names)} names; {MAX_MARKS} are the most.")
    return tuple(names)

"""A reader's marks: papers read or liked, and followed layers, techniques and words."""

from collections.abc import Iterable
from dataclasses import dataclass

from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.lists import PaperList, read_lists
from orrery.evidence.feed.store import Store

FOLLOWED = ("layer", "technique", "words")
"""Kinds of things that can be followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Marks of a reader: papers read, upvoted and listed; layers, techniques and words followed."""

    read: frozenset[str] = frozenset()
    upvoted: frozenset[str] = frozenset()
    layers: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    lists: tuple[PaperList, ...] = ()


def read_marks(store: Store) -> Marks:
    """The marks of a library."""
    rows = store.rows("select * from marks")
    follows = store.rows("select * from follows order by kind, what")
    by_kind = {kind: tuple(row["what"] for row in follows if row["kind"] == kind) for kind in FOLLOWED}
    return Marks(
        read=frozenset(row["entry"] for row in rows if row["is_read"]),
        upvoted=frozenset(row["entry"] for row in rows if row["is_upvoted"]),
        layers=by_kind["layer"],
        techniques=by_kind["technique"],
        words=by_kind["words"],
        lists=read_lists(store),
    )


def mark(store: Store, ids: Iterable[str], *, is_read: bool | None = None, is_upvoted: bool | None = None) -> None:
    """Mark papers; None leaves a mark as it is."""
    with store.transaction():
        for id in ids:
            store.execute("insert or ignore into marks (entry) values (?)", (id,))
            for column, value in (("is_read", is_read), ("is_upvoted", is_upvoted)):
                if value is not None:
                    store.execute(f"update marks set {column} = ? where entry = ?", (int(value), id))
        store.execute("delete from marks where not is_read and not is_upvoted")


def read_followed(text: str) -> tuple[str, str]:
    """``layer:serving`` as kind and name."""
    kind, colon, what = text.partition(":")
    what = " ".join(what.split())
    if kind not in FOLLOWED or not colon or not what:
        raise FeedError(
            f"follow: {text!r} is nothing that can be followed; write layer:serving, technique:chunked-prefill "
            "or words:'speculative decoding'."
        )
    return kind, what


def followed(marks: Marks) -> list[tuple[str, str]]:
    """Layers, techniques and words that are followed, as kind and name."""
    by_kind = zip(FOLLOWED, (marks.layers, marks.techniques, marks.words), strict=True)
    return [(kind, name) for kind, names in by_kind for name in names]


def follow(store: Store, things: Iterable[tuple[str, str]], *, is_on: bool = True) -> None:
    """Follow things, or stop to."""
    sql = "insert or ignore into follows values (?, ?)" if is_on else "delete from follows where kind = ? and what = ?"
    store.many(sql, things)

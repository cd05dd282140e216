"""Subscriptions: who gets a digest, of what, and how often; kept in the library's file.

An address that somebody typed into a page is *pending* until the link in a letter to it is followed (double opt-in);
one that the library's owner adds is *active* at once. Who leaves is *ended*, and stays known as such.
"""

import json
import re
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.store import Store
from orrery.evidence.understanding.names import check_layers, check_techniques

Frequency = Literal["day", "week", "month"]
State = Literal["pending", "active", "ended"]

FREQUENCIES: tuple[Frequency, ...] = ("day", "week", "month")
MAX_CHOSEN = 20
"""Layers, techniques or searches of one subscription."""

LONGEST_ADDRESS, LONGEST_NAME, LONGEST_SEARCH = 254, 64, 200
"""Letters: of an address, of its part before the @ [rfc-5321], and of a search."""

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_ADDRESS = re.compile(rf"({_ATOM}(?:\.{_ATOM})*)@({_NAME}(?:\.{_NAME})+)")
"""As forms in browsers take it: nothing in quotes, no comments, no bare numbers of machines in brackets."""

TABLES = """
create table subscriptions (
    id integer primary key, address text not null unique, layers text not null, techniques text not null,
    searches text not null, frequency text not null, state text not null, made_at_s real not null
);
create table letters (
    subscription integer not null, period text not null, state text not null, message_id text not null,
    entries text not null, at_s real not null, said text not null, primary key (subscription, period)
);
create table secrets (name text primary key, value blob not null)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionFilter:
    """A reader's filter; with nothing chosen, everything passes."""

    layers: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()  # saved searches: a paper must have all words of one
    frequency: Frequency = "week"

    def __str__(self) -> str:
        """The filter as text: its frequency and subjects."""
        chosen = [*self.layers, *self.techniques, *(repr(search) for search in self.searches)]
        return f"by {self.frequency}, {', '.join(chosen) or 'everything'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One address and what it wants."""

    id: int
    address: str
    selection: SubscriptionFilter
    state: State


class Subscriptions:
    """The subscriptions of a library."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        store.extend("digest", TABLES)
        self._store, self._clock = store, clock

    def all(self, *states: State) -> tuple[Subscription, ...]:
        """Return the subscriptions in one of the states, or all, in the order in which they came."""
        rows = self._store.rows("select * from subscriptions order by id")
        return tuple(s for s in map(_subscription, rows) if not states or s.state in states)

    def get(self, id: int) -> Subscription | None:
        """The subscription of that number."""
        rows = self._store.rows("select * from subscriptions where id = ?", (id,))
        return _subscription(rows[0]) if rows else None

    def find(self, address: str) -> Subscription | None:
        """The subscription of that address."""
        rows = self._store.rows("select * from subscriptions where address = ?", (checked_address(address),))
        return _subscription(rows[0]) if rows else None

    def ask(self, address: str, selection: SubscriptionFilter, state: State) -> Subscription:
        """Write down what an address wants.

        An active one that asks again changes nothing unless its owner does: who types somebody's address into a page
        must not be able to change what they get.
        """
        address = checked_address(address)
        check_selection(selection)
        with self._store.transaction():
            known = self.find(address)
            if known is None or known.state != "active" or state == "active":
                lists = (json.dumps(x) for x in (selection.layers, selection.techniques, selection.searches))
                values = (address, *lists, selection.frequency, state, self._clock())
                self._store.execute(
                    "insert into subscriptions (address, layers, techniques, searches, frequency, state, made_at_s) "
                    "values (?, ?, ?, ?, ?, ?, ?) on conflict (address) do update set layers = excluded.layers, "
                    "techniques = excluded.techniques, searches = excluded.searches, frequency = excluded.frequency, "
                    "state = excluded.state, made_at_s = excluded.made_at_s",
                    values,
                )
            found = self.find(address)
        assert found is not None
        return found

    def change(self, id: int, state: State) -> None:
        """Confirm or end a subscription; doing so twice is no error."""
        self._store.execute("update subscriptions set state = ? where id = ?", (state, id))


def _subscription(row: sqlite3.Row) -> Subscription:
    layers, techniques, searches = (tuple(json.loads(row[name])) for name in ("layers", "techniques", "searches"))
    selection = SubscriptionFilter(layers=layers, techniques=techniques, searches=searches, frequency=row["frequency"])
    return Subscription(id=row["id"], address=row["address"], selection=selection, state=row["state"])


def checked_address(address: str) -> str:
    """An address as it is kept; refuses what is none."""
    found = _ADDRESS.fullmatch(address.strip()) if len(address) <= 2 * LONGEST_ADDRESS else None
    if not found or len(found[0]) > LONGEST_ADDRESS or len(found[1]) > LONGEST_NAME:
        raise FeedError(f"{address[:80]!r} is no address for letters; write one such as ann@example.org.")
    return f"{found[1]}@{found[2].lower()}"


def check_selection(selection: SubscriptionFilter) -> None:
    """Refuse more than a reader can mean, and names that nothing has."""
    check_layers(selection.layers)
    check_techniques(selection.techniques)
    for name in ("layers", "techniques", "searches"):
        chosen: tuple[str, ...] = getattr(selection, name)
        if len(chosen) > MAX_CHOSEN or any(not c.strip() or len(c) > LONGEST_SEARCH for c in chosen):
            raise FeedError(f"{name}: write up to {MAX_CHOSEN}, none empty or longer than {LONGEST_SEARCH} letters.")


def checked_frequency(text: str) -> Frequency:
    """Frequency from a word."""
    for frequency in FREQUENCIES:
        if frequency == text:
            return frequency
    raise FeedError(f"frequency: {text[:40]!r} is none of {', '.join(FREQUENCIES)}.")

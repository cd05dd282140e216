"""Letters to everyone whose period has begun: each period's letter once, whatever crashes.

Before a letter is handed to the mail server the library says on disk that it is *on its way*. Only a refusal that the
server itself stated puts it back; a letter still on its way after a crash may have arrived, so it is not sent again.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from orrery.evidence.digest.email_message import Sender, digest_letter
from orrery.evidence.digest.issue import AskedDeployment, DigestIssue, chosen, period
from orrery.evidence.digest.post import Connection
from orrery.evidence.digest.subscription import Frequency, Subscription, Subscriptions
from orrery.evidence.digest.tokens import Tokens
from orrery.evidence.feed.store import Store
from orrery.evidence.understanding.trending import Trend, trending

Outcome = Literal["sent", "refused", "unsure", "empty"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Outcome of one letter."""

    address: str
    period: str
    outcome: Outcome
    num_papers: int
    text: str = ""  # by the server


def send_due(
    store: Store,
    today: date,
    sender: Sender,
    connection: Connection,
    *,
    deployment: AskedDeployment | None = None,
    clock: Callable[[], float] = time.time,
) -> Iterator[Sent]:
    """Send what is due, one letter after the other. An issue without papers sends nothing, and stays due."""
    subscriptions, tokens = Subscriptions(store, clock), Tokens(store, clock)
    trends: dict[Frequency, list[Trend]] = {}
    for reader in subscriptions.all("active"):
        name = period(reader.selection.frequency, today)
        if not _is_due(store, reader, name):
            continue
        often = reader.selection.frequency
        if often not in trends:
            trends[often] = trending(store, today, often)
        before = _sent_before(store, reader)
        issue = chosen(trends[often], today, reader.selection, without=before, deployment=deployment)
        if not issue.items:
            yield Sent(address=reader.address, period=name, outcome="empty", num_papers=0)
            continue
        letter = digest_letter(issue, reader, name, sender, tokens)
        if not _begin(store, reader, name, issue, str(letter["Message-ID"]), clock()):
            continue  # another process has it
        handed, text = connection.hand_over(letter)
        _end(store, reader, name, handed, text)
        yield Sent(address=reader.address, period=name, outcome=handed, num_papers=len(issue.items), text=text)


def unsure(store: Store) -> tuple[tuple[str, str], ...]:
    """Addresses and periods of letters that may or may not have arrived, each told once."""
    from_clause = "from letters join subscriptions on subscription = id where letters.state = 'on its way'"
    with store.transaction():
        rows = store.rows(f"select address, period {from_clause}")
        store.execute("update letters set state = 'unsure' where state = 'on its way'")
    return tuple((row["address"], row["period"]) for row in rows)


def _is_due(store: Store, reader: Subscription, name: str) -> bool:
    rows = store.rows("select state from letters where subscription = ? and period = ?", (reader.id, name))
    return not rows or rows[0]["state"] == "refused"


def _sent_before(store: Store, reader: Subscription) -> frozenset[str]:
    """Papers of letters that arrived, or may have."""
    rows = store.rows("select entries from letters where subscription = ? and state != 'refused'", (reader.id,))
    return frozenset(id for row in rows for id in json.loads(row["entries"]))


def _begin(store: Store, reader: Subscription, name: str, issue: DigestIssue, message_id: str, now_s: float) -> bool:
    """Say that the letter is on its way, unless it is or was; on disk before anything is sent."""
    entries = json.dumps([item.trend.entry.id for item in issue.items])
    with store.transaction():
        if not _is_due(store, reader, name):
            return False
        store.execute(
            "insert or replace into letters values (?, ?, 'on its way', ?, ?, ?, '')",
            (reader.id, name, message_id, entries, now_s),
        )
    return True


def _end(store: Store, reader: Subscription, name: str, handed: str, text: str) -> None:
    state = {"sent": "sent", "refused": "refused", "unsure": "on its way"}[handed]
    store.execute(
        "update letters set state = ?, said = ? where subscription = ? and period = ?",
        (state, text[:500], reader.id, name),
    )

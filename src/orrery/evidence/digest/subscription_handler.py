"""The pages behind the links: subscribe, confirm, leave, and the feed.

What a link opens changes nothing by itself, because programs that check mail open links too: a button does. Mail
programs that end a subscription with one click post to the same address [rfc-8058]. Nothing here tells whether an
address is known.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from email.message import EmailMessage
from http import HTTPStatus
from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.evidence.digest.email_message import Sender, confirm_letter, known_letter
from orrery.evidence.digest.issue import compose
from orrery.evidence.digest.render import as_atom, template
from orrery.evidence.digest.subscription import SubscriptionFilter, Subscriptions, checked_frequency
from orrery.evidence.digest.tokens import Purpose, Tokens
from orrery.evidence.feed.store import Store
from orrery.evidence.understanding.names import check_layers
from orrery.evidence.understanding.weights import shipped

ASKED_PER_HOUR = 5
"""Letters that one client may cause in an hour, or that may go to one address; all together ten times as many."""

FEED_S = 300.0
"""A feed that was made so long ago is given out again as it is."""

MAX_FEEDS = 50

Mail = Callable[[EmailMessage], None]
"""Hands one letter to a mail server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer."""

    status: HTTPStatus
    body: str
    kind: str = "text/html; charset=utf-8"


def page(
    title: str, text: str, *, status: HTTPStatus = HTTPStatus.OK, action: str = "", token: str = "", button: str = ""
) -> Page:
    """A page of a line of text, with the form or the button that it is for."""
    body = template("subscription.html").render(title=title, text=text, action=action, token=token, button=button)
    return Page(status=status, body=body)


ASKED = "If that address can get letters, one is on its way to it. Open the link in it within a week."
GONE = "This link is not good any more, or was cut off on its way."


class SubscriptionHandler:
    """Answers requests; knows nothing of sockets."""

    def __init__(self, library: Path, sender: Sender, mail: Mail, clock: Callable[[], float] = time.time) -> None:
        self._library, self._sender, self._mail, self._clock = library, sender, mail, clock
        self._inputs: dict[str, list[float]] = {}
        self._feeds: dict[tuple[str, ...], tuple[float, str]] = {}
        self._asking, self._feeding = threading.Lock(), threading.Lock()

    def get(self, path: str, query: dict[str, str]) -> Page:
        """The page behind a link."""
        token = query.get("token", "")
        if path in ("/", "/subscribe"):
            known = ", ".join(shipped().layers)
            text = f"New papers on AI compute, by letter. You will be asked to confirm. The layers are {known}."
            return page("Subscribe", text, action="subscribe")
        if path == "/confirm":
            return page("Confirm", "Do you want the digest?", action="confirm", token=token, button="Yes, send it")
        if path == "/unsubscribe":
            return page("Unsubscribe", "No further digest?", action="unsubscribe", token=token, button="Unsubscribe")
        if path == "/feed.atom":
            return self._feed(query)
        return page("Not found", "There is no such page.", status=HTTPStatus.NOT_FOUND)

    def post(self, path: str, query: dict[str, str], form: dict[str, str], client: str) -> Page:
        """Action of a button or of a mail program's one-click request."""
        if path == "/subscribe":
            return self._subscribe(form, client)
        if path == "/confirm":
            return self._change("confirm", query.get("token", ""), "You will get the digest.")
        if path == "/unsubscribe":
            return self._change("leave", query.get("token", ""), "No further digest will be sent to you.")
        return page("Not found", "There is no such page.", status=HTTPStatus.NOT_FOUND)

    def _subscribe(self, form: dict[str, str], client: str) -> Page:
        if self._is_too_often(client, form.get("address", "").strip().casefold()):
            text = "Too many were asked for from here; try again in an hour."
            return page("Later, please", text, status=HTTPStatus.TOO_MANY_REQUESTS)
        try:
            searches = tuple(part for part in (form.get("search", "").strip(),) if part)
            frequency = checked_frequency(form.get("frequency", "week"))
            selection = SubscriptionFilter(layers=_layers(form), searches=searches, frequency=frequency)
            with Store(self._library) as store:
                reader = Subscriptions(store, self._clock).ask(form.get("address", ""), selection, "pending")
                written = confirm_letter if reader.state == "pending" else known_letter
                letter = written(reader, self._sender, Tokens(store, self._clock))
        except OrreryError as error:
            return page("Not understood", str(error), status=HTTPStatus.BAD_REQUEST)
        try:
            self._mail(letter)  # to whoever it is: neither the answer nor its time tells who is known
        except OrreryError:
            text = "Letters cannot be sent just now; try again later."
            return page("Later, please", text, status=HTTPStatus.SERVICE_UNAVAILABLE)
        return page("Look into your mail", ASKED, status=HTTPStatus.ACCEPTED)

    def _change(self, purpose: Purpose, token: str, done: str) -> Page:
        with Store(self._library) as store:
            subscriptions = Subscriptions(store, self._clock)
            id = Tokens(store, self._clock).read(purpose, token)
            known = None if id is None else subscriptions.get(id)
            if known is None or (purpose == "confirm" and known.state == "ended"):
                return page("Not good", GONE, status=HTTPStatus.BAD_REQUEST)
            subscriptions.change(known.id, "active" if purpose == "confirm" else "ended")
        return page("Done", done)

    def _feed(self, query: dict[str, str]) -> Page:
        """The papers of a month; made once in a while, by one at a time, since it takes longer than any other page."""
        layers = tuple(sorted(set(_layers(query))))
        check_layers(layers)
        with self._feeding:
            made_at_s, body = self._feeds.get(layers, (0.0, ""))
            if not body or abs(self._clock() - made_at_s) > FEED_S:
                with Store(self._library) as store:
                    selection = SubscriptionFilter(layers=layers, frequency="month")
                    issue = compose(store, date.fromtimestamp(self._clock()), selection, most=100)
                body = as_atom(issue, f"{self._sender.site}/feed.atom")
                if len(self._feeds) >= MAX_FEEDS:
                    self._feeds.clear()
                self._feeds[layers] = (self._clock(), body)
        return Page(status=HTTPStatus.OK, body=body, kind="application/atom+xml; charset=utf-8")

    def _is_too_often(self, client: str, address: str) -> bool:
        """Counts what a client, and everybody, asked for within the last hour, and for which address."""
        now = self._clock()
        with self._asking:
            recent = {who: [t for t in times if abs(now - t) < 3600] for who, times in self._inputs.items()}
            self._inputs = {who: times for who, times in recent.items() if times}
            whose = (f"from {client}", f"to {address}")
            most = max(len(self._inputs.get(who, ())) for who in whose)
            everybody = sum(len(times) for who, times in self._inputs.items() if who.startswith("from "))
            if most >= ASKED_PER_HOUR or everybody >= 10 * ASKED_PER_HOUR:
                return True
            for who in whose:
                self._inputs.setdefault(who, []).append(now)
            return False


def _layers(fields: Mapping[str, str]) -> tuple[str, ...]:
    """Names by comma."""
    return tuple(part.strip() for part in fields.get("layers", "").split(",") if part.strip())

"""The pages behind the links: subscribe, confirm, leave, and the feed; a small server for this machine or a proxy.

What a link opens changes nothing by itself, because programs that check mail open links too: a button does. Mail
programs that end a subscription with one click post to the same address [rfc-8058]. Nothing here tells whether an
address is known.
"""

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from email.message import EmailMessage
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from orrery.base.errors import OrreryError
from orrery.evidence.digest.issue import compose
from orrery.evidence.digest.letter import Sender, confirm_letter
from orrery.evidence.digest.render import as_atom, template
from orrery.evidence.digest.subscription import Subscriptions, Wanted, checked_frequency
from orrery.evidence.digest.tokens import Purpose, Tokens
from orrery.evidence.feed.store import Store

MOST_BODY_BYTES = 4096
MOST_AT_ONCE = 32
PATIENCE_S = 10.0
"""For the whole of a request's lines and body."""

ASKED_PER_HOUR = 5
"""Letters that one client may cause in an hour; all clients together ten times as many."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}  # fmt: skip

Mail = Callable[[EmailMessage], None]
"""Hands one letter to a mail server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer."""

    status: HTTPStatus
    body: str
    kind: str = "text/html; charset=utf-8"


def _page(title: str, text: str, *, status: HTTPStatus = HTTPStatus.OK, action: str = "", token: str = "",
          button: str = "") -> Page:  # fmt: skip
    body = template("desk.html").render(title=title, text=text, action=action, token=token, button=button)
    return Page(status=status, body=body)


ASKED = "If that address can get letters, one is on its way to it. Open the link in it within a week."
GONE = "This link is not good any more, or was cut off on its way."


class Desk:
    """Answers requests; knows nothing of sockets."""

    def __init__(self, library: Path, sender: Sender, mail: Mail, clock: Callable[[], float] = time.time) -> None:
        self._library, self._sender, self._mail, self._clock = library, sender, mail, clock
        self._asked: dict[str, list[float]] = {}
        self._lock = threading.Lock()

    def get(self, path: str, query: dict[str, str]) -> Page:
        """What a link shows."""
        token = query.get("token", "")
        if path in ("/", "/subscribe"):
            text = "New papers on AI compute, by letter. You will be asked to confirm."
            return _page("Subscribe", text, action="subscribe")
        if path == "/confirm":
            return _page("Confirm", "Do you want the digest?", action="confirm", token=token, button="Yes, send it")
        if path == "/unsubscribe":
            return _page("Unsubscribe", "No further digest?", action="unsubscribe", token=token, button="Unsubscribe")
        if path == "/feed.atom":
            return self._feed(query)
        return _page("Not found", "There is no such page.", status=HTTPStatus.NOT_FOUND)

    def post(self, path: str, query: dict[str, str], form: dict[str, str], client: str) -> Page:
        """What a button or a mail program asks for."""
        if path == "/subscribe":
            return self._subscribe(form, client)
        if path == "/confirm":
            return self._change("confirm", query.get("token", ""), "You will get the digest.")
        if path == "/unsubscribe":
            return self._change("leave", query.get("token", ""), "No further digest will be sent to you.")
        return _page("Not found", "There is no such page.", status=HTTPStatus.NOT_FOUND)

    def _subscribe(self, form: dict[str, str], client: str) -> Page:
        if self._is_too_often(client):
            text = "Too many were asked for from here; try again in an hour."
            return _page("Later, please", text, status=HTTPStatus.TOO_MANY_REQUESTS)
        try:
            layers = tuple(part.strip() for part in form.get("layers", "").split(",") if part.strip())
            searches = tuple(part for part in (form.get("search", "").strip(),) if part)
            wanted = Wanted(
                layers=layers, searches=searches, frequency=checked_frequency(form.get("frequency", "week"))
            )
            with Store(self._library) as store:
                reader = Subscriptions(store, self._clock).ask(form.get("address", ""), wanted, "pending")
                letter = confirm_letter(reader, self._sender, Tokens(store, self._clock))
        except OrreryError as error:
            return _page("Not understood", str(error), status=HTTPStatus.BAD_REQUEST)
        if reader.state == "pending":
            try:
                self._mail(letter)
            except OrreryError:
                text = "Letters cannot be sent just now; try again later."
                return _page("Later, please", text, status=HTTPStatus.SERVICE_UNAVAILABLE)
        return _page("Look into your mail", ASKED, status=HTTPStatus.ACCEPTED)

    def _change(self, purpose: Purpose, token: str, done: str) -> Page:
        with Store(self._library) as store:
            subscriptions = Subscriptions(store, self._clock)
            id = Tokens(store, self._clock).read(purpose, token)
            known = None if id is None else subscriptions.get(id)
            if known is None or (purpose == "confirm" and known.state == "ended"):
                return _page("Not good", GONE, status=HTTPStatus.BAD_REQUEST)
            subscriptions.change(known.id, "active" if purpose == "confirm" else "ended")
        return _page("Done", done)

    def _feed(self, query: dict[str, str]) -> Page:
        wanted = Wanted(layers=tuple(part for part in query.get("layers", "").split(",") if part), frequency="month")
        with Store(self._library) as store:
            issue = compose(store, date.fromtimestamp(self._clock()), wanted, most=100)
        body = as_atom(issue, f"{self._sender.site}/feed.atom")
        return Page(status=HTTPStatus.OK, body=body, kind="application/atom+xml; charset=utf-8")

    def _is_too_often(self, client: str) -> bool:
        """Counts what a client, and everybody, asked for within the last hour."""
        now = self._clock()
        with self._lock:
            self._asked = {
                c: recent for c, times in self._asked.items() if (recent := [t for t in times if t > now - 3600])
            }
            mine, everybody = len(self._asked.get(client, ())), sum(map(len, self._asked.values()))
            if mine >= ASKED_PER_HOUR or everybody >= 10 * ASKED_PER_HOUR:
                return True
            self._asked.setdefault(client, []).append(now)
            return False


def serve(desk: Desk, host: str = "127.0.0.1", port: int = 0) -> ThreadingHTTPServer:
    """A server for the desk, bound and not yet running; ``serve_forever`` runs it."""
    places = threading.BoundedSemaphore(MOST_AT_ONCE)

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_S
        server_version, sys_version = "orrery", ""

        def handle(self) -> None:
            """One request; where all places are taken, the connection is closed at once."""
            if places.acquire(blocking=False):
                late = threading.Timer(PATIENCE_S, _hang_up, (self.connection,))
                late.start()
                try:
                    super().handle()
                finally:
                    late.cancel()
                    places.release()

        def do_GET(self) -> None:
            self._answer(lambda path, query: desk.get(path, query))

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
                self._say(_page("Too large", "This is no form of ours.", status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
                return
            form = _fields(self.rfile.read(int(length)).decode(errors="replace"))
            self._answer(lambda path, query: desk.post(path, query, form, self.client_address[0]))

        def _answer(self, ask: Callable[[str, dict[str, str]], Page]) -> None:
            parts = urlsplit(self.path)
            try:
                page = ask(parts.path, _fields(parts.query))
            except OrreryError as error:
                page = _page("Not understood", str(error), status=HTTPStatus.BAD_REQUEST)
            self._say(page)

        def _say(self, page: Page) -> None:
            body = page.body.encode()
            self.send_response(page.status)
            for name, value in {**HEADERS, "Content-Type": page.kind, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Addresses and tokens are nobody's business: nothing is logged."""

    return _Quiet((host, port), Handler)


class _Quiet(ThreadingHTTPServer):
    """A client that hangs up is no news."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


def _hang_up(connection: socket.socket) -> None:
    """End a connection whose client takes its time, however it spreads its bytes."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _fields(text: str) -> dict[str, str]:
    """The first value of each field; too many fields are none."""
    try:
        return {name: values[0] for name, values in parse_qs(text, max_num_fields=20).items()}
    except ValueError:
        return {}

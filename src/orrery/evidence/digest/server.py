"""The desk's socket: one request a connection, limits on all that a client sends, and nothing in a log."""

import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from orrery.base.errors import OrreryError
from orrery.base.listening import not_listening
from orrery.evidence.digest.subscription_handler import Page, SubscriptionHandler, page

MAX_BODY_BYTES = 4096
MAX_AT_ONCE = 32
PATIENCE_S = 10.0
"""For the whole of a request's lines and body; and for a client to take the answer."""

METHODS = "GET, HEAD, POST"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def serve(desk: SubscriptionHandler, host: str = "127.0.0.1", port: int = 0) -> ThreadingHTTPServer:
    """A server for the desk, bound and not yet running; ``serve_forever`` runs it."""
    places = threading.BoundedSemaphore(MAX_AT_ONCE)

    class Bound(_Handler):
        at = desk
        timeout = PATIENCE_S

        def handle(self) -> None:
            """One request; where all places are taken, the connection is closed at once."""
            if places.acquire(blocking=False):
                try:
                    super().handle()
                finally:
                    places.release()

    try:
        return (_Server6 if ":" in host else _Server)((host, port), Bound)
    except (OSError, UnicodeError) as error:
        raise not_listening(host, port, error) from None


class _Handler(BaseHTTPRequestHandler):
    """HTTP handler around the subscription pages."""

    at: SubscriptionHandler
    server_version, sys_version = "orrery", ""

    def handle(self) -> None:
        """A request that has not come in time, however its bytes are spread, is cut off."""
        self._late = threading.Timer(PATIENCE_S, _hang_up, (self.connection,))
        self._late.daemon = True
        self._late.start()
        try:
            super().handle()
        finally:
            self._late.cancel()

    def do_GET(self) -> None:
        """A page."""
        self._answer(lambda path, query: self.at.get(path, query))

    def do_HEAD(self) -> None:
        """A page's headers."""
        self.do_GET()

    def do_POST(self) -> None:
        """A form, or a mail program's one click."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > MAX_BODY_BYTES:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        form = _fields(self.rfile.read(int(length)).decode(errors="replace"))
        self._answer(lambda path, query: self.at.post(path, query, form, self._client()))

    def _client(self) -> str:
        """Address of the client: as a proxy on this machine states it, else that of the connection."""
        peer = str(self.client_address[0])
        text = ",".join(self.headers.get_all("X-Forwarded-For", ())).rpartition(",")[2].strip()
        return text[:64] if text and ip_address(peer.partition("%")[0]).is_loopback else peer

    def _answer(self, ask: Callable[[str, dict[str, str]], Page]) -> None:
        self._late.cancel()  # all of the request is here
        try:
            parts = urlsplit(self.path)
            found = ask(parts.path, _fields(parts.query))
        except OrreryError as error:
            found = page("Not understood", str(error), status=HTTPStatus.BAD_REQUEST)
        except ValueError:  # no address at all
            found = page("Not found", "There is no such page.", status=HTTPStatus.NOT_FOUND)
        self._say(found)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer malformed requests with a page like any other, which repeats nothing of the request."""
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self.close_connection = True
        self._say(page(status.phrase, "This is no request that can be answered here.", status=status))

    def _say(self, found: Page) -> None:
        body = found.body.encode(errors="replace")
        self.send_response(found.status)
        allow = {"Allow": METHODS} if found.status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        for name, value in {**HEADERS, **allow, "Content-Type": found.kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Addresses and tokens are nobody's business: nothing is logged."""


class _Server(ThreadingHTTPServer):
    """A client that hangs up is no news."""

    daemon_threads = True
    request_queue_size = 2 * MAX_AT_ONCE

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


class _Server6(_Server):
    """At an address of the newer kind."""

    address_family = socket.AF_INET6


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _fields(text: str) -> dict[str, str]:
    """The first value of each field; too many fields are none."""
    try:
        return {name: values[0] for name, values in parse_qs(text, max_num_fields=20).items()}
    except ValueError:
        return {}

"""Checks before every page: allowed hosts and origins, rate limits, and headers that restrict the browser.

A page of another site can make a browser send requests here. Those are told apart by the Host header (a name that leads
here by DNS tricks is not ours) and, for whatever changes something, by ``Sec-Fetch-Site`` and ``Origin``, which pages
cannot forge. What only reads may take seconds of work, so another site may lead here by a link, and no more: none of
its pictures, frames and scripts may ask in a loop. Programs that are no browser send neither, and hold no one's session
that could be misused.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orrery.base.listening import refused_host

MAX_BODY_BYTES = 4_000_000
"""Maximum size of one request's body (bytes), uploads included."""

MAX_ADDRESS_BYTES = 16_000
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES = frozenset({"same-origin", "none"})
"""Values of ``Sec-Fetch-Site`` from our own pages, and from an address that somebody typed."""

TOO_LARGE = f"The request is larger than {MAX_BODY_BYTES:,} bytes; send less."

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; manifest-src 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str] = ()) -> None:
        self._app, self._names = app, frozenset(host.casefold().strip("[]") for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve what may be served."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope, Headers(scope=scope))
        app = PlainTextResponse(refusal[1], refusal[0]) if refusal else self._app
        counted = Counted(receive)
        try:
            await app(scope, counted, _with_headers(send))
        except TooLarge:
            await PlainTextResponse(TOO_LARGE, 413)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """(status, why); None: welcome."""
        if refusal := refused_host(headers.getlist("host"), self._names):
            return refusal
        host = headers["host"].casefold()
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > MAX_ADDRESS_BYTES:
            return 414, "The address is too long."
        size = headers.get("content-length", "0")
        if size.isdecimal() and float(size) > MAX_BODY_BYTES:
            return 413, TOO_LARGE
        if scope["method"] not in SAFE and not _is_own(headers, host):
            return 403, "Another site may not change anything here."
        if headers.get("sec-fetch-site", "none") not in OWN_SITES and not _is_link(headers):
            return 403, "Another site may link here, and not ask by itself."
        return None


class TooLarge(Exception):
    """A body grew beyond what is taken."""


class Counted:
    """A body that is counted as it is read."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._count = receive, 0

    async def __call__(self) -> Message:
        """The next part."""
        message = await self._receive()
        self._count += len(message.get("body", b""))
        if self._count > MAX_BODY_BYTES:
            raise TooLarge
        return message


def _is_link(headers: Headers) -> bool:
    """Whether somebody follows a link to a page, which then stands alone."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest", "document") == "document"


def _is_own(headers: Headers, host: str) -> bool:
    """Whether a request that changes something comes from a page of ours, or from no page at all."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in OWN_SITES
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.casefold() == host


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded

"""Asking a server for a document, politely: paced, conditional, patient with failures, and never more than a limit."""

import socket
import threading
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.metadata import version
from typing import Any
from urllib.parse import urljoin, urlsplit

from orrery.evidence.feed.extra import FeedError, load
from orrery.evidence.feed.pace import Clock, RateLimiter

USER_AGENT = f"orrery/{version('orrery-ai')} (reads lists of new papers; one request at a time)"
MAX_BYTES = 20_000_000
MAX_REDIRECTS = 5
TRIES = 4
FIRST_BACKOFF_S = 4.0
MAX_RETRY_AFTER_S = 120.0
"""Whoever asks for a longer pause is asked again another day."""

SILENCE_S = 30.0
"""Without a byte for so long, a connection counts as lost."""

MAX_S = 300.0
"""A document that trickles in for longer, head or body, is given up."""

MAX_HEADER_CHARACTERS = 500

REDIRECTS = (301, 302, 303, 307, 308)
GONE = (404, 410)
TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A server's answer."""

    url: str
    body: bytes
    content_type: str = ""
    etag: str = ""
    last_modified: str = ""
    is_unchanged: bool = False  # since the one that the reader has


class _Failed(Exception):
    """A try that may succeed later."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class NotThere(FeedError):
    """There is no document at an address."""


@dataclass(kw_only=True)
class Reader:
    """One connection at a time to whatever is asked for."""

    pace: RateLimiter
    clock: Clock = field(default_factory=Clock)
    most_bytes: int = MAX_BYTES
    silence_s: float = SILENCE_S
    most_s: float = MAX_S

    def get(self, url: str, etag: str = "", last_modified: str = "", body: bytes = b"") -> Document:
        """The document, or that it has not changed; a question too long for an address goes along as ``body`` (JSON).
        FeedError says why it cannot be had."""
        for attempt in range(TRIES - 1):
            try:
                return self._try(url, etag, last_modified, body)
            except _Failed as failed:
                self._pause(url, failed, attempt)
        try:
            return self._try(url, etag, last_modified, body)
        except _Failed as failed:
            raise FeedError(f"{shown(url)}: {failed}; tried {TRIES} times.") from None

    def _pause(self, url: str, failed: _Failed, attempt: int) -> None:
        """As long as the server asks for, else twice as long as the last time."""
        pause_s = failed.retry_after_s
        if pause_s is not None and pause_s > MAX_RETRY_AFTER_S:
            raise FeedError(f"{shown(url)}: {failed}; it asks to come back in {pause_s:.0f} s.")
        self.clock.wait_s(FIRST_BACKOFF_S * 2.0**attempt if pause_s is None else pause_s)

    def _try(self, url: str, etag: str, last_modified: str, body: bytes) -> Document:
        """One try, redirects followed."""
        headers = {
            "User-Agent": USER_AGENT,
            "Accept": "application/atom+xml, application/json, */*;q=0.5",
            "Accept-Encoding": "gzip",
        }
        headers |= {"Content-Type": "application/json"} if body else {}
        headers |= {"If-None-Match": etag} if etag else {}
        headers |= {"If-Modified-Since": last_modified} if last_modified else {}
        target = url
        for _ in range(MAX_REDIRECTS + 1):
            check_web(target)
            self.pace.wait()
            with self._answer(target, headers, body) as answer:
                if answer.status_code in REDIRECTS and "location" in answer.headers:
                    target = _next(target, answer.headers["location"])
                    continue
                return self._document(url, answer)
        raise FeedError(f"{shown(url)}: redirects more than {MAX_REDIRECTS} times.")

    @contextmanager
    def _answer(self, url: str, headers: dict[str, str], body: bytes) -> Generator[Any]:
        """The head of an answer, with its body still to come; failures of the network become ``_Failed``."""
        httpx = load("httpx")
        watch = _Watch()
        late = threading.Timer(self.most_s, watch.end)
        late.daemon = True
        late.start()
        try:
            with (
                _client(url, self.silence_s) as client,
                client.stream(
                    "POST" if body else "GET", url, headers=headers, content=body or None, extensions={"trace": watch}
                ) as answer,
            ):
                yield answer
            if watch.is_ended:  # a body without a length looks whole when it is cut
                raise self._late(url)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise FeedError(f"{shown(url)}: is no address: {error}.") from None
        except httpx.TimeoutException:
            raise _Failed(f"no answer within {self.silence_s:g} s") from None
        except httpx.TransportError as error:
            if watch.is_ended:
                raise self._late(url) from None
            raise _Failed(f"the connection failed ({type(error).__name__}: {error})") from None
        finally:
            late.cancel()

    def _late(self, url: str) -> FeedError:
        return FeedError(f"{shown(url)}: the answer was not complete after {self.most_s:g} s.")

    def _document(self, url: str, answer: Any) -> Document:
        head: Any = answer.headers
        if answer.status_code == 304:
            return Document(url=url, body=b"", is_unchanged=True)
        if answer.status_code in TRY_AGAIN:
            raise _Failed(f"the server answers {answer.status_code}", _retry_after_s(head.get("retry-after", "")))
        if answer.status_code in GONE:
            raise NotThere(f"{shown(url)}: the server answers {answer.status_code} {shown(answer.reason_phrase)}.")
        if answer.status_code != 200:
            raise FeedError(f"{shown(url)}: the server answers {answer.status_code} {shown(answer.reason_phrase)}.")
        return Document(
            url=url,
            body=self._body(url, answer),
            content_type=head.get("content-type", ""),
            etag=_sent_back(head.get("etag", "")),
            last_modified=_sent_back(head.get("last-modified", "")),
        )

    def _body(self, url: str, answer: Any) -> bytes:
        """All of it, unpacked; given up when it is too large, packed or unpacked."""
        pieces: list[bytes] = []
        num_packed = num_bytes = 0
        for packed, piece in _unpacked(url, answer, self.most_bytes + 1):
            num_packed, num_bytes = num_packed + packed, num_bytes + len(piece)
            if max(num_packed, num_bytes) > self.most_bytes:
                raise FeedError(f"{shown(url)}: answers with more than {self.most_bytes / 1e6:g} MB; it was not read.")
            pieces.append(piece)
        return b"".join(pieces)


class _Watch:
    """Knows the socket of a request, and ends it where the server takes its time, however it spreads its bytes."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self.is_ended = False

    def __call__(self, event: str, found: dict[str, Any]) -> None:
        """Record a step of the client."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = found["return_value"].get_extra_info("socket")

    def end(self) -> None:
        """Hang up."""
        self.is_ended = True
        if self._socket:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


def _client(url: str, silence_s: float) -> Any:
    """One connection, through whatever proxy the environment names."""
    trust = _certificates() if url.startswith("https:") else False  # nothing to verify without encryption
    try:
        return load("httpx").Client(timeout=silence_s, follow_redirects=False, verify=trust)
    except (ImportError, ValueError) as error:
        raise FeedError(f"The proxy that the environment names cannot be used: {error}.") from None


def _unpacked(url: str, answer: Any, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Pieces of a body: their bytes on the way, and what they hold; never more of it at once than a limit."""
    packing = answer.headers.get("content-encoding", "").strip().lower()
    if packing in ("", "identity"):
        yield from ((len(piece), piece) for piece in answer.iter_raw())
        return
    if packing not in ("gzip", "x-gzip"):
        raise FeedError(f"{shown(url)}: content encoding {shown(packing)} was not requested.")
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for piece in answer.iter_raw():
            yield len(piece), unpacking.decompress(piece, most_bytes)
    except zlib.error as error:
        raise _Failed(f"the answer cannot be unpacked ({error})") from None
    if not unpacking.eof:
        raise _Failed("the answer broke off")


def _sent_back(text: str) -> str:
    """Validators to send with the next request; none where a header could not be repeated unchanged."""
    return text if text.isascii() and text.isprintable() and len(text) <= MAX_HEADER_CHARACTERS else ""


@cache
def _certificates() -> Any:
    """Return the trusted certificates; read once, since that takes longer than many a request."""
    return load("httpx").create_ssl_context()


def check_web(url: str) -> None:
    """Refuse whatever is no address in the web."""
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_web = False
    if not is_web:
        raise FeedError(f"{shown(url)}: is no web address; write one that begins with https://.")


def _next(url: str, location: str) -> str:
    """Where a redirect leads: never from an encrypted connection to a plain one."""
    check_web(url)
    try:
        target = urljoin(url, location)
    except ValueError:
        raise FeedError(f"{shown(url)}: redirects to {shown(location)}, which is no web address.") from None
    check_web(target)
    if urlsplit(url).scheme == "https" and urlsplit(target).scheme == "http":
        raise FeedError(f"{shown(url)}: redirects to the unencrypted {shown(target)}; it was not followed.")
    return target


def _retry_after_s(text: str) -> float | None:
    """Seconds that a server asks to wait, written as such or as a date; None where it says nothing."""
    if text.strip().isascii() and text.strip().isdecimal():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError, OverflowError):
        return None


def shown(url: str) -> str:
    """An address as an error shows it: without control characters, and not longer than a line."""
    return "".join(c for c in url if c.isprintable())[:160]

"""Asking a server for a document, politely: paced, conditional, patient with failures, and never more than a limit."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.metadata import version
from typing import Any
from urllib.parse import urljoin, urlsplit

from orrery.evidence.feed.extra import FeedError, load
from orrery.evidence.feed.pace import Clock, Pace

USER_AGENT = f"orrery/{version('orrery')} (reads lists of new papers; one request at a time)"
MOST_BYTES = 20_000_000
MOST_REDIRECTS = 5
TRIES = 4
FIRST_BACKOFF_S = 4.0
MOST_RETRY_AFTER_S = 120.0
"""Whoever asks for a longer pause is asked again another day."""

SILENCE_S = 30.0
"""Without a byte for so long, a connection counts as lost."""

MOST_S = 300.0
"""A document that trickles in for longer is given up."""

REDIRECTS = (301, 302, 303, 307, 308)
TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a server answered."""

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


@dataclass(kw_only=True)
class Reader:
    """One connection at a time to whatever is asked for."""

    pace: Pace
    clock: Clock = field(default_factory=Clock)
    most_bytes: int = MOST_BYTES
    silence_s: float = SILENCE_S

    def get(self, url: str, etag: str = "", last_modified: str = "") -> Document:
        """The document, or that it has not changed. FeedError says why it cannot be had."""
        for attempt in range(TRIES - 1):
            try:
                return self._try(url, etag, last_modified)
            except _Failed as failed:
                self._pause(url, failed, attempt)
        try:
            return self._try(url, etag, last_modified)
        except _Failed as failed:
            raise FeedError(f"{shown(url)}: {failed}; tried {TRIES} times.") from None

    def _pause(self, url: str, failed: _Failed, attempt: int) -> None:
        """As long as the server asks for, else twice as long as the last time."""
        pause_s = failed.retry_after_s
        if pause_s is not None and pause_s > MOST_RETRY_AFTER_S:
            raise FeedError(f"{shown(url)}: {failed}; it asks to come back in {pause_s:.0f} s.")
        self.clock.wait_s(FIRST_BACKOFF_S * 2.0**attempt if pause_s is None else pause_s)

    def _try(self, url: str, etag: str, last_modified: str) -> Document:
        """One try, redirects followed."""
        headers = {"User-Agent": USER_AGENT, "Accept": "application/atom+xml, application/json, */*;q=0.5"}
        headers |= {"If-None-Match": etag} if etag else {}
        headers |= {"If-Modified-Since": last_modified} if last_modified else {}
        asked = url
        for _ in range(MOST_REDIRECTS + 1):
            check_web(asked)
            self.pace.wait()
            with self._answer(asked, headers) as answer:
                if answer.status_code in REDIRECTS and "location" in answer.headers:
                    asked = _next(asked, answer.headers["location"])
                    continue
                return self._document(url, answer)
        raise FeedError(f"{shown(url)}: redirects more than {MOST_REDIRECTS} times.")

    @contextmanager
    def _answer(self, url: str, headers: dict[str, str]) -> Generator[Any]:
        """The head of an answer, with its body still to come; failures of the network become ``_Failed``."""
        httpx = load("httpx")
        try:
            trust = _certificates() if url.startswith("https:") else False  # nothing to verify without encryption
            with httpx.stream(
                "GET", url, headers=headers, timeout=self.silence_s, follow_redirects=False, verify=trust
            ) as answer:
                yield answer
        except httpx.InvalidURL as error:
            raise FeedError(f"{shown(url)}: is no address: {error}.") from None
        except httpx.TimeoutException:
            raise _Failed(f"no answer within {self.silence_s:g} s") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise _Failed(f"the connection failed ({type(error).__name__}: {error})") from None

    def _document(self, url: str, answer: Any) -> Document:
        head: Any = answer.headers
        if answer.status_code == 304:
            return Document(url=url, body=b"", is_unchanged=True)
        if answer.status_code in TRY_AGAIN:
            raise _Failed(f"the server answers {answer.status_code}", _retry_after_s(head.get("retry-after", "")))
        if answer.status_code != 200:
            raise FeedError(f"{shown(url)}: the server answers {answer.status_code} {shown(answer.reason_phrase)}.")
        return Document(
            url=url, body=self._body(url, answer), content_type=head.get("content-type", ""),
            etag=head.get("etag", ""), last_modified=head.get("last-modified", ""),
        )  # fmt: skip

    def _body(self, url: str, answer: Any) -> bytes:
        """All of it, unpacked; given up when it is too large or too slow."""
        pieces: list[bytes] = []
        num_bytes, started_s = 0, self.clock.now_s()
        for piece in answer.iter_bytes():
            num_bytes += len(piece)
            if num_bytes > self.most_bytes:
                raise FeedError(f"{shown(url)}: answers with more than {self.most_bytes / 1e6:g} MB; it was not read.")
            if self.clock.now_s() - started_s > MOST_S:
                raise _Failed(f"the answer was not complete after {MOST_S:g} s")
            pieces.append(piece)
        return b"".join(pieces)


@cache
def _certificates() -> Any:
    """Whom to trust; read once, since that takes longer than many a request."""
    return load("httpx").create_ssl_context()


def check_web(url: str) -> None:
    """Refuse whatever is no address in the web."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise FeedError(f"{shown(url)}: is no web address; write one that begins with https://.")


def _next(url: str, location: str) -> str:
    """Where a redirect leads: never from an encrypted connection to a plain one."""
    target = urljoin(url, location)
    check_web(target)
    if urlsplit(url).scheme == "https" and urlsplit(target).scheme == "http":
        raise FeedError(f"{shown(url)}: redirects to the unencrypted {shown(target)}; it was not followed.")
    return target


def _retry_after_s(said: str) -> float | None:
    """Seconds that a server asks to wait, written as such or as a date; None where it says nothing."""
    if said.strip().isdigit():
        return float(said)
    try:
        return max(0.0, (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def shown(url: str) -> str:
    """An address as an error shows it: without control characters, and not longer than a line."""
    return "".join(c for c in url if c.isprintable())[:160]

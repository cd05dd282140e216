"""A file of papers, whatever kind it is: a saved feed, a saved answer, or a page saved as text."""

from datetime import date
from pathlib import Path

from orrery.base.user_file import read_user_bytes
from orrery.evidence.feed.atom import read_atom
from orrery.evidence.feed.daily import read_daily
from orrery.evidence.feed.entry import Read
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.page import read_page

MAX_BYTES = 20_000_000
"""Largest size (bytes) of one document; the longest list of a day has some three million."""


def read_file(path: Path, today: date, page_year: int | None = None) -> Read:
    """The papers of a file."""
    document = read_user_bytes(path, "saved page or feed", MAX_BYTES, FeedError)
    return read_document(document, path.name, today, page_year)


def read_document(document: bytes, source: str, today: date, page_year: int | None = None) -> Read:
    """The papers of a document, told apart by how it begins."""
    start = document[:1000].replace(b"\x00", b"").removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] == b"[" or start[:2] in (b'{"', b"{\n", b"{ "):
        return read_daily(document, source)
    if start[:5].lower() in (b"<?xml", b"<feed", b"<rss ") or start[:9].lower() == b"<!doctype":
        return read_atom(document, source)
    if start[:5].lower() == b"<html":
        raise FeedError(f"{source}: is a web page; save it as text, or give its feed.")
    return read_page(_decoded(document), source, today, page_year)


def _decoded(document: bytes) -> str:
    """Text in UTF-8, else in UTF-16 where it says so, else in what western machines wrote before."""
    if document[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return document.decode("utf-16", errors="replace")
    try:
        return document.decode("utf-8-sig")
    except UnicodeDecodeError:
        return document.decode("cp1252", errors="replace")

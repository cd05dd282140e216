"""Feeds and lists of new papers: Atom, RSS, JSON, and pages saved as text."""

from datetime import date
from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.evidence.feed.file import read_file

NAME = "feed"
SEEDS = (
    b'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>q</title><entry>'
    b"<id>http://arxiv.org/abs/2401.09670v3</id><title>DistServe</title><summary>We split prefill and decode.</summary>"
    b"<published>2024-01-18T01:02:03Z</published><author><name>Ann</name></author>"
    b'<category term="cs.DC"/><link href="https://arxiv.org/abs/2401.09670"/></entry></feed>',
    b'<?xml version="1.0"?><rss version="2.0"><channel><title>cs.DC</title><item><title>A title</title>'
    b"<link>https://arxiv.org/abs/2401.00001</link><description>arXiv:2401.00001v1 Announce Type: new Abstract: Words."
    b"</description><pubDate>Mon, 22 Jan 2024 00:00:00 -0500</pubDate></item></channel></rss>",
    b'[{"paper": {"id": "2401.00001", "title": "T", "summary": "S", "authors": [{"name": "A"}], "upvotes": 3,'
    b'"publishedAt": "2024-01-22T00:00:00.000Z"}, "numComments": 1}]',
    b"Daily Papers\n\nJan 22\n\nA title of a paper\n\nAnn, Bob\n\n12\n\nWe do things.\n",
)
WORDS = (
    b"<entry>",
    b"</entry>",
    b"&#x0;",
    b"&#xD800;",
    b"&amp;",
    b"<![CDATA[",
    b"]]>",
    b"<!DOCTYPE",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"<id>",
    b"/api/errors",
    b"0000-00-00",
    b"9999-99-99",
    b"<html",
    b"null",
    b"{}",
    b"1e999",
    b"[" * 2000,
    b"opensearch:",
)
REFUSALS = (OrreryError,)


def read(path: Path) -> None:
    """The papers of a document."""
    read_file(path, date(2026, 11, 23))

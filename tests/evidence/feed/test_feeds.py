"""Atom, RSS and JSON as the sources write them, and as they should not."""

import json
import time
from datetime import date

import pytest

from orrery.evidence.feed.atom import read_atom
from orrery.evidence.feed.daily import read_daily
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.text import arxiv_id, plain, whole_arxiv_id

RSS = b"""<?xml version='1.0' encoding='UTF-8'?>
<rss xmlns:arxiv="http://arxiv.org/schemas/atom" xmlns:dc="http://purl.org/dc/elements/1.1/" version="2.0"><channel>
<title>cs.DC updates</title><item><title>A list</title><link>https://arxiv.org/abs/2611.00007</link>
<description>arXiv:2611.00007v3 Announce Type: replace-cross
Abstract: We list things, 40\\% faster at $2\\times$ the size.</description>
<guid isPermaLink="false">oai:arXiv.org:2611.00007v3</guid><category>cs.DC</category>
<pubDate>Fri, 20 Nov 2026 00:00:00 -0500</pubDate><dc:creator>Ada B, Cy D, E F</dc:creator></item></channel></rss>"""


def test_the_api_of_arxiv(arxiv):
    read = read_atom(arxiv.feed(arxiv.entry("2611.00001", version=2), total=1234), "arxiv")
    (entry,) = read.entries
    assert (entry.id, entry.version, entry.num_authors, entry.authors) == ("2611.00001", 2, 2, ("Ada B", "Cy D"))
    assert (entry.published, entry.categories) == (date(2026, 11, 20), ("cs.DC", "cs.LG"))
    assert entry.url == "https://arxiv.org/abs/2611.00001"
    assert read.num_total == 1234


def test_the_daily_list_of_arxiv_as_rss():
    (entry,) = read_atom(RSS, "rss").entries
    assert (entry.id, entry.version, entry.num_authors) == ("2611.00007", 3, 3)
    assert entry.abstract == "We list things, 40% faster at 2\u00d7 the size."
    assert entry.published == date(2026, 11, 20)


def test_a_list_of_a_day_without_papers_is_empty_and_fine(arxiv):
    assert read_atom(arxiv.feed(), "rss").entries == ()


def test_hostile_words_in_a_feed_are_plain_afterwards(arxiv):
    title = "&lt;img src=x onerror=alert(1)&gt;Cold &amp;lt;b&amp;gt;Tokens"
    abstract = "<script>steal()</script>We go on.&#27;[2J<a href='javascript:x'>Done.</a>"
    (entry,) = read_atom(arxiv.feed(arxiv.entry("2611.00001", title, abstract)), "x").entries
    assert entry.title == "Cold Tokens"
    assert entry.abstract.replace(" ", "") == "Wegoon.Done."


def test_definitions_of_entities_are_refused_unread(arxiv):
    laughs = '<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    feed = arxiv.feed(arxiv.entry("2611.00001")).decode().replace("<feed", laughs + "<feed", 1)
    for document in (feed.encode(), feed.encode("utf-16")):
        with pytest.raises(FeedError, match="defines entities"):
            read_atom(document, "x")
    with pytest.raises(FeedError, match="is a web page"):
        read_atom(b"<!DOCTYPE html><html><body>Rate exceeded.</body></html>", "x")
    with pytest.raises(FeedError, match="no Atom or RSS"):
        read_atom(b"Rate exceeded.", "x")


def test_a_feed_that_was_cut_loses_its_last_entry_only(arxiv):
    whole = arxiv.feed(arxiv.entry("2611.00001"), arxiv.entry("2611.00002"), arxiv.entry("2611.00003"))
    cut = whole[: whole.rindex(b"It is 2x") + 5]
    read = read_atom(cut, "x")
    assert [e.id for e in read.entries] == ["2611.00001", "2611.00002"]
    assert "cut short" in str(read.skipped[0])


def test_malformed_and_wrongly_declared_feeds_are_read_as_far_as_they_go(arxiv):
    broken = arxiv.feed(arxiv.entry("2611.00001", "Cold & Warm <Tokens"), arxiv.entry("2611.00002"))
    assert [e.id for e in read_atom(broken, "x").entries] == ["2611.00001", "2611.00002"]
    latin = arxiv.feed(arxiv.entry("2611.00001", "Mélange")).decode().encode("latin-1")
    assert read_atom(latin, "x", "application/atom+xml; charset=utf-8").entries[0].title == "Mélange"


def test_an_entry_that_says_nothing_is_named(arxiv):
    read = read_atom(arxiv.feed(arxiv.entry("2611.00001", abstract=" "), arxiv.entry("2611.00002")), "x")
    assert [e.id for e in read.entries] == ["2611.00002"]
    assert str(read.skipped[0]) == "x: 'A title' has no abstract."


def test_an_error_of_arxiv_is_passed_on(arxiv):
    entry = arxiv.entry("1").replace("http://arxiv.org/abs/1v1", "http://arxiv.org/api/errors#incorrect_id")
    with pytest.raises(FeedError, match=r"arXiv answers: It is 2x faster"):
        read_atom(arxiv.feed(entry), "x")


DAILY = [
    {
        "paper": {
            "id": "2611.00009",
            "title": "Daily\nTokens",
            "summary": "They come daily.",
            "upvotes": 12,
            "authors": [{"name": "Ada B", "hidden": False}],
            "publishedAt": "2026-11-19T00:00:00.000Z",
            "submittedOnDailyAt": "2026-11-21T08:00:00.000Z",
            "organization": {"name": "acme", "fullname": "Acme"},
        },
        "title": "Daily Tokens",
        "numComments": 3,
    },
    {"paper": {"id": "2611.00010", "title": "No words"}},
    "nonsense",
    {"paper": {"id": 5, "title": "Odd <i>types</i>", "summary": "Fine.", "upvotes": "many", "authors": "Ada"}},
]


def test_daily_papers_of_hugging_face():
    read = read_daily(json.dumps(DAILY).encode(), "daily")
    daily, odd = read.entries
    assert (daily.id, daily.title, daily.organisation) == ("2611.00009", "Daily Tokens", "Acme")
    assert (daily.num_votes, daily.num_comments, daily.num_authors) == (12, 3, 1)
    assert (daily.published, daily.updated) == (date(2026, 11, 19), date(2026, 11, 21))
    assert (odd.id[:6], odd.title, odd.num_votes, odd.authors) == ("title:", "Odd types", None, ())
    assert [s.why for s in read.skipped] == ["paper 2 'No words' has no abstract.", "paper 3 '' has no title."]


@pytest.mark.parametrize("document", [b"<html>", b'{"error": "Rate limit"}', b"\xff\xfe\x00", b"[" * 100_000])
def test_what_is_no_daily_list_is_said_to_be_none(document):
    with pytest.raises(FeedError, match="no list of daily papers"):
        read_daily(document, "daily")


def test_ids_in_every_spelling():
    assert arxiv_id("http://arxiv.org/abs/2401.09670v3") == ("2401.09670", 3)
    assert arxiv_id("oai:arXiv.org:cs.DC/0501001v1") == ("cs.DC/0501001", 1)
    assert arxiv_id("12401.096701") == ("", 0)
    assert whole_arxiv_id("arXiv:2401.09670v1") == "2401.09670"
    assert whole_arxiv_id("distserve") == ""


@pytest.mark.parametrize(
    "bad", ["<script" * 3000, "<" * 20_000, "<!--" * 5000, "\x1b]" * 10_000, "&lt;" * 5000, "$" * 20_000]
)
def test_no_text_takes_long_to_make_plain(bad):
    started = time.process_time()
    plain(bad * (20_000 // len(bad)))
    assert time.process_time() - started < 1.0


def test_what_a_server_answers_is_never_the_name_of_a_file(tmp_path, arxiv):
    secret = tmp_path / "secret.xml"
    secret.write_bytes(arxiv.feed(arxiv.entry("2611.00001", "Secret")))
    with pytest.raises(FeedError, match="no Atom or RSS"):
        read_atom(str(secret).encode(), "x")


@pytest.mark.parametrize("odd", ["&#xD800;", "&#xDFFF;", "&#55296;", "&#99999999;", "&#0;", "\x00", "\u202e", "\u2028"])
def test_odd_letters_cost_no_entry(arxiv, odd):
    feed = arxiv.feed(arxiv.entry("2611.00001", f"Cold {odd}Tokens"), arxiv.entry("2611.00002"))
    cold, other = read_atom(feed, "x").entries
    assert (cold.title.replace(" ", ""), other.id) == ("ColdTokens", "2611.00002")


def test_odd_numbers_and_days_in_a_feed_are_left_out(arxiv):
    (entry,) = read_atom(arxiv.feed(arxiv.entry("2611.00001", published="0000-99-99"), total="\u00b2"), "x").entries
    assert entry.published is None
    assert read_atom(arxiv.feed(total="9" * 5000), "x").num_total is None


def test_a_feed_with_a_prefix_is_whole(arxiv):
    feed = b"""<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry><a:id>http://arxiv.org/abs/2611.00001v1</a:id>
    <a:title>Cold Tokens</a:title><a:summary>It is cold.</a:summary></a:entry></a:feed >"""
    read = read_atom(feed, "x")
    assert ([e.id for e in read.entries], read.skipped) == (["2611.00001"], ())


def test_ids_are_of_plain_digits():
    assert whole_arxiv_id("\u0662\u0664\u0660\u0661.\u0660\u0669\u0666\u0667\u0660") == ""

"""Fetching: pages into the library, once each, going on where it stopped."""

import json
import os
import re
import signal
import subprocess
import sys
from datetime import date
from urllib.parse import parse_qs, urlsplit

import pytest

from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.fetch import fetch, fetch_ids, keep_read
from orrery.evidence.feed.http import Reader
from orrery.evidence.feed.pace import RateLimiter
from orrery.evidence.feed.page import read_page
from orrery.evidence.feed.question import Question
from orrery.evidence.feed.saved_entries import Saved, all_entries
from orrery.evidence.feed.sources import source_named, url_of
from orrery.evidence.feed.store import Store

TODAY = date(2026, 11, 22)


@pytest.fixture
def reader(fake_time):
    return Reader(pace=RateLimiter(interval_s=3.0, clock=fake_time.clock), clock=fake_time.clock)


def asked_starts(server):
    return [int(parse_qs(urlsplit(path).query)["start"][0]) for path, _ in server.inputs]


def listing(arxiv, numbers, total):
    return (200, {}, arxiv.feed(*(arxiv.entry(f"2611.{n:05d}", f"Paper {n}") for n in numbers), total=total))


def question(server, **more):
    return Question(source="arxiv", base=f"{server.url}/api", page_papers=2, **more)


def test_page_after_page_until_there_is_no_more(server, arxiv, store, reader, fake_time):
    server.tell("/api", listing(arxiv, (5, 4), 5), listing(arxiv, (3, 2), 5), listing(arxiv, (1,), 5))
    description = []
    found = fetch(store, reader, question(server), TODAY, lambda done, total: description.append((done, total)))
    assert (found.saved, found.num_pages, found.is_complete) == (Saved(num_new=5), 3, True)
    assert asked_starts(server) == [0, 2, 4]
    assert fake_time.waits == [3.0, 3.0]
    assert (description[0], description[-1]) == ((0, 100), (100, 100))
    assert [e.id for e in all_entries(store)] == [f"2611.{n:05d}" for n in (1, 2, 3, 4, 5)]


def test_no_more_papers_than_asked_for_and_none_older(server, arxiv, store, reader):
    server.tell("/api", listing(arxiv, (5, 4), 99), listing(arxiv, (3, 2), 99))
    assert fetch(store, reader, question(server, most_papers=3), TODAY).saved == Saved(num_new=3)
    assert len(server.inputs) == 2
    old = arxiv.entry("2601.00001", "Old", published="2026-01-05")
    server.tell("/api", (200, {}, arxiv.feed(arxiv.entry("2611.00009", "New"), old, total=99)))
    found = fetch(store, reader, question(server, since=date(2026, 11, 1)), TODAY)
    assert ([e.id for e in found.entries], found.num_pages) == (["2611.00009"], 1)
    assert "submittedDate%3A%5B202611010000" in server.inputs[-1][0]


def test_a_broken_fetch_goes_on_where_it_stopped(server, arxiv, store, reader):
    server.tell("/api", listing(arxiv, (5, 4), 5), (404, {}, b""))
    broken = fetch(store, reader, question(server), TODAY, now_s=lambda: 1e6)
    assert (broken.saved.num_new, broken.is_complete) == (2, False)
    assert "answers 404" in str(broken.skipped[0])
    server.tell("/api", listing(arxiv, (3, 2), 5), listing(arxiv, (1,), 5))
    rest = fetch(store, reader, question(server), TODAY, now_s=lambda: 1e6 + 3600)
    assert (rest.saved.num_new, rest.went_on_from, rest.is_complete) == (3, 1, True)
    assert asked_starts(server) == [0, 2, 2, 4]
    server.tell("/api", listing(arxiv, (5, 4), 2))
    assert fetch(store, reader, question(server), TODAY, now_s=lambda: 1e6 + 7200).went_on_from == 0


def test_after_a_day_a_broken_fetch_starts_again(server, arxiv, store, reader):
    server.tell("/api", listing(arxiv, (5, 4), 5), (404, {}, b""))
    fetch(store, reader, question(server), TODAY, now_s=lambda: 1e6)
    server.tell("/api", listing(arxiv, (6, 5), 2))
    assert fetch(store, reader, question(server), TODAY, now_s=lambda: 1e6 + 90_000).went_on_from == 0


def test_a_page_that_cannot_be_read_is_left_out_and_the_next_one_asked_for(server, arxiv, store, reader):
    laughs = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><feed/>'
    server.tell("/api", listing(arxiv, (5, 4), 5), (200, {}, laughs), listing(arxiv, (1,), 5))
    found = fetch(store, reader, question(server), TODAY)
    assert (found.saved.num_new, found.is_complete) == (3, True)
    assert "defines entities" in str(found.skipped[0])


def test_what_stands_there_twice_is_kept_once_in_its_latest_version(server, arxiv, store, reader):
    twice = (arxiv.entry("2611.00001", version=1), arxiv.entry("2611.00001", abstract="Later.", version=2))
    server.tell("/api", (200, {}, arxiv.feed(*twice)))
    found = fetch(store, reader, question(server), TODAY)
    assert [str(s) for s in found.skipped] == ["arxiv: 2611.00001 stands there twice."]
    assert [e.abstract for e in all_entries(store)] == ["Later."]
    assert [e.abstract for e in found.entries] == ["Later."]


def test_a_list_that_has_not_changed_is_not_read_again(server, arxiv, store, reader):
    server.tell("/rss/cs.DC+cs.LG", (200, {"ETag": '"7"'}, arxiv.feed(arxiv.entry("2611.00001"))))
    requested = Question(source="rss", categories=("cs.DC", "cs.LG"), base=f"{server.url}/rss")
    assert fetch(store, reader, requested, TODAY).saved == Saved(num_new=1)
    again = fetch(store, reader, requested, TODAY)
    assert (again.saved, again.num_unchanged, again.is_complete) == (Saved(), 1, True)
    assert server.inputs[1][1]["If-None-Match"] == '"7"'


def test_daily_lists_are_asked_for_day_by_day(server, store, reader):
    def day(number):
        paper = {
            "id": f"2611.0000{number}",
            "title": f"Daily {number}",
            "summary": "Words.",
            "upvotes": number,
            "publishedAt": "2019-01-01T00:00:00Z",
        }
        return (200, {}, json.dumps([{"paper": paper, "numComments": 0}]).encode())

    server.tell("/daily", day(1), (200, {}, b"{"), day(3))
    requested = Question(source="daily", base=f"{server.url}/daily", since=date(2026, 11, 20))
    found = fetch(store, reader, requested, TODAY)
    assert [re.search(r"date=([\d-]+)", path)[1] for path, _ in server.inputs] == [
        "2026-11-22",
        "2026-11-21",
        "2026-11-20",
    ]
    assert [e.num_votes for e in found.entries] == [1, 3]
    assert "daily, page 2" in str(found.skipped[0])
    with pytest.raises(FeedError, match="go back 92 days"):
        source_named(requested.source).num_pages(Question(source="daily", since=date(2020, 1, 1)), TODAY)


def test_a_search_in_arxivs_own_words():
    requested = lambda **more: parse_qs(urlsplit(url_of(Question(source="arxiv", **more), 0, TODAY)).query)  # noqa: E731
    assert requested()["search_query"] == ["(cat:cs.DC OR cat:cs.AR OR cat:cs.PF)"]
    assert requested(query='"LLM serving" cache')["search_query"] == ['all:"LLM serving" AND all:cache']
    assert requested(query="ti:cache ANDNOT au:x", categories=("cs.DC",))["search_query"] == [
        "(cat:cs.DC) AND (ti:cache ANDNOT au:x)"
    ]
    assert requested()["sortBy"] == ["submittedDate"]


def test_a_list_that_was_not_kept_whole_is_sent_again(server, arxiv, store, reader):
    feed = arxiv.feed(*(arxiv.entry(f"2611.0000{i}") for i in range(1, 5)))
    server.tell("/api", (200, {"ETag": '"same"'}, feed))

    def ask(most):
        return fetch(
            store,
            reader,
            Question(
                source="rss",
                base=f"{server.url}/api",
                most_papers=most,
                categories=(".",),
            ),
            TODAY,
        )

    server.tell("/api/.", (200, {"ETag": '"same"'}, feed))
    assert ask(2).saved == Saved(num_new=2)
    assert ask(200).saved == Saved(num_new=2, num_same=2)
    assert ask(200).num_unchanged == 1


def test_papers_by_id(server, arxiv, store, reader):
    server.tell("/api", (200, {}, arxiv.feed(arxiv.entry("2611.00001"))))
    found = fetch_ids(store, reader, ("2611.00001", "2611.00002"), TODAY, f"{server.url}/api")
    assert found.saved.num_new == 1
    assert [str(s) for s in found.skipped] == ["arXiv: there is no paper 2611.00002."]
    assert "id_list=2611.00001%2C2611.00002" in server.inputs[0][0]


def test_a_page_at_hand(store):
    page = read_page("Cold Tokens\n" + "Words follow words. " * 30, "page", TODAY)
    assert keep_read(store, page, TODAY).saved == Saved(num_new=1)


FETCHER = """
import sys
from datetime import date
from pathlib import Path
from orrery.evidence.feed.fetch import fetch
from orrery.evidence.feed.http import Reader
from orrery.evidence.feed.pace import RateLimiter
from orrery.evidence.feed.question import Question
from orrery.evidence.feed.store import Store

question = Question(source="arxiv", base=sys.argv[2], page_papers=2)
fetch(Store(Path(sys.argv[1])), Reader(pace=RateLimiter(interval_s=0.0)), question, date(2026, 11, 22))
"""


def test_a_fetch_that_was_killed_goes_on(server, arxiv, tmp_path, reader):
    path, rejected = tmp_path / "library.sqlite", []

    def kill(handler):
        os.kill(rejected[0].pid, signal.SIGKILL)
        return listing(arxiv, (1,), 5)

    server.tell("/api", listing(arxiv, (5, 4), 5), listing(arxiv, (3, 2), 5), kill)
    rejected.append(subprocess.Popen([sys.executable, "-c", FETCHER, str(path), f"{server.url}/api"]))
    assert rejected[0].wait(timeout=30) == -signal.SIGKILL
    server.tell("/api", listing(arxiv, (1,), 5))
    with Store(path) as store:
        assert store.rows("pragma integrity_check")[0][0] == "ok"
        assert len(all_entries(store)) == 4
        rest = fetch(store, reader, question(server), TODAY)
        assert (rest.went_on_from, rest.saved.num_new, rest.is_complete) == (2, 1, True)

"""Semantic Scholar, OpenReview and Hugging Face's pages: answers in the shape of their interfaces, and what is kept."""

import json
from datetime import date, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from orrery.evidence.feed.daily import read_daily, read_paper_page
from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.fetch import fetch
from orrery.evidence.feed.http import Reader
from orrery.evidence.feed.openreview import read_openreview
from orrery.evidence.feed.pace import RateLimiter
from orrery.evidence.feed.question import Question
from orrery.evidence.feed.record import Known, Record
from orrery.evidence.feed.records import FRESH_DAYS, all_records, not_asked
from orrery.evidence.feed.saved_entries import all_entries, save_entries
from orrery.evidence.feed.scholar import read_scholar
from orrery.evidence.feed.sources import SOURCES, about, url_of
from orrery.evidence.feed.text import title_id

TODAY = date(2026, 11, 22)
NEW = Known(id="2611.00001", title="Caches of tomorrow")
OLD = Known(id="2401.00002", title="Caches of yesterday")
NAMELESS = Known(id=title_id("A cache without a number"), title="A cache without a number")


@pytest.fixture
def reader(fake_time):
    return Reader(pace=RateLimiter(interval_s=2.0, clock=fake_time.clock), clock=fake_time.clock)


def of_scholar(arxiv="2611.00001", title="Caches of tomorrow", **more):
    return {
        "paperId": "649def34f8be52c8b66281af98ae884c09aef38b",
        "externalIds": {"ArXiv": arxiv, "CorpusId": 7} if arxiv else {"CorpusId": 7},
        "url": "https://www.semanticscholar.org/paper/649def",
        "title": title,
        "abstract": "A KV cache that is 2x smaller.",
        "venue": "Symposium on Operating Systems Principles",
        "publicationDate": "2026-11-20",
        "citationCount": 1421,
        "influentialCitationCount": 12,
        "authors": [{"authorId": "1", "name": "Ada B"}, {"authorId": None, "name": "Cy D"}],
    } | more


def of_openreview(
    title="Caches of tomorrow", venue="ICLR 2026 Poster", venueid="ICLR.cc/2026/Conference", forum="aB-9"
):
    content = {"title": title, "abstract": "A cache.", "authors": ["Ada B"], "venue": venue, "venueid": venueid}
    return {
        "id": forum,
        "forum": forum,
        "cdate": 1758000000000,
        "pdate": 1769472000000,  # 27 January 2026
        "mdate": 1769472000000,
        "content": {name: {"value": value} for name, value in content.items()},
    }


def of_page(arxiv="2611.00001", title="Caches of tomorrow", **more):
    return {
        "id": arxiv,
        "title": title,
        "summary": "A cache.",
        "authors": [{"_id": "1", "name": "Ada B", "hidden": False}],
        "publishedAt": "2026-11-20T00:00:00.000Z",
        "upvotes": 87,
        "discussionId": "6",
        "githubRepo": "https://github.com/ada/caches",
        "githubStars": 5,
        "ai_summary": "Not to be copied.",
        "organization": {"name": "ada", "fullname": "Ada's Laboratory"},
    } | more


def answer(body, **headers):
    return (200, headers, json.dumps(body).encode())


def test_semantic_scholar_says_how_often_a_paper_is_cited_and_where_it_appeared():
    page = {"total": 3, "offset": 0, "data": [of_scholar(), of_scholar("", "Elsewhere", venue="arXiv.org"), {}]}
    read = read_scholar(json.dumps(page).encode(), "scholar")
    assert read.num_total == 3
    assert [(e.id, e.authors, e.published) for e in read.entries] == [
        ("2611.00001", ("Ada B", "Cy D"), date(2026, 11, 20)),
        (title_id("Elsewhere"), ("Ada B", "Cy D"), date(2026, 11, 20)),
    ]
    assert [r.words for r in read.records] == [
        "Symposium on Operating Systems Principles, 1,421 citations, 12 influential",
        "1,421 citations, 12 influential",
    ]
    assert read.records[0].url == "https://www.semanticscholar.org/paper/649def"


def test_semantic_scholar_without_an_abstract_still_has_a_record():
    read = read_scholar(json.dumps([of_scholar(abstract=None, citationCount=True), None]).encode(), "scholar")
    assert (read.entries, [r.num_citations for r in read.records]) == ((), [None])
    assert "has no abstract" in str(read.skipped[0])


@pytest.mark.parametrize(
    ("venue", "venueid", "words"),
    [
        ("ICLR 2026 Poster", "ICLR.cc/2026/Conference", "ICLR 2026 Poster"),
        ("Submitted to ICLR 2026", "ICLR.cc/2026/Conference/Rejected_Submission", "ICLR 2026 (rejected)"),
        ("ICLR 2026", "ICLR.cc/2026/Conference/Withdrawn_Submission", "ICLR 2026 (withdrawn)"),
        ("ICLR 2026", "ICLR.cc/2026/Conference/Desk_Rejected_Submission", "ICLR 2026 (desk rejected)"),
        ("ICLR 2026 Conference Submission", "ICLR.cc/2026/Conference/Submission",
         "ICLR 2026 Conference Submission (under review)"),
        ("Submitted to ICLR 2026", "ICLR.cc/2026/Conference", "ICLR 2026 (under review)"),
        ("Submitted to TMLR", "TMLR/Rejected", "TMLR (rejected)"),
        ("", "", ""),
    ],
)  # fmt: skip
def test_openreview_says_what_was_decided(venue, venueid, words):
    read = read_openreview(
        json.dumps({"notes": [of_openreview(venue=venue, venueid=venueid)], "count": 1}).encode(), "o"
    )
    (record,) = read.records
    assert record.words == words
    assert record.discussion_url == "https://openreview.net/forum?id=aB-9"
    assert [(e.published, e.num_authors) for e in read.entries] == [(date(2026, 1, 27), 1)]


def test_openreview_of_the_first_interface_and_notes_that_are_no_submissions():
    bare = {"forum": "x", "content": {"title": "Bare", "abstract": "Words.", "venue": "ICLR 2021 Oral"}}
    read = read_openreview(json.dumps({"notes": [bare, {"forum": "y", "content": {"comment": "Hi"}}]}).encode(), "o")
    assert [(r.paper, r.words) for r in read.records] == [(title_id("Bare"), "ICLR 2021 Oral")]
    assert "has no title" in str(read.skipped[0])


def test_a_page_of_hugging_face_says_who_where_and_how_many():
    (record,) = read_paper_page(json.dumps(of_page()).encode(), "pages").records
    assert record == Record(
        paper="2611.00001",
        source="pages",
        url="https://huggingface.co/papers/2611.00001",
        num_votes=87,
        organisation="Ada's Laboratory",
        code_url="https://github.com/ada/caches",
        discussion_url="https://huggingface.co/papers/2611.00001",
    )
    hostile = of_page(githubRepo="javascript:alert(1)", organization=["x"], upvotes=-1)
    (record,) = read_daily(json.dumps([{"paper": hostile, "numComments": 3}]).encode(), "daily").records
    assert (record.code_url, record.organisation, record.num_votes, record.source) == ("", "", None, "daily")


@pytest.mark.parametrize("read", [read_scholar, read_openreview, read_paper_page])
def test_what_is_no_answer_is_refused(read):
    for document in (b"<html>", b'{"error": "Too many requests"}', b"[" * 100_000):
        with pytest.raises(FeedError, match="is no "):
            read(document, "x")
    assert read(b"[7, null, {}]", "x").entries == ()


def test_known_papers_are_asked_about_in_one_request_and_not_again_for_a_week(server, store, reader):
    save_entries(store, [Entry(id=NEW.id, title=NEW.title, abstract="Old words.", source="arxiv")], TODAY)
    server.tell("/s2/paper/batch", answer([of_scholar(), None]))
    question = Question(source="scholar", base=f"{server.url}/s2")
    known = (NEW, OLD, NAMELESS)
    asked = about(question, store, known, TODAY)
    assert asked.papers == (NEW, OLD)  # it is asked by arXiv id
    found = fetch(store, reader, asked, TODAY)
    assert json.loads(server.bodies[0]) == {"ids": ["ARXIV:2611.00001", "ARXIV:2401.00002"]}
    assert server.inputs[0][1]["Content-Type"] == "application/json"
    assert (found.num_asked, found.num_records, found.is_list, found.is_complete) == (2, 1, False, True)
    assert all_records(store)[NEW.id][0].num_citations == 1421
    assert all_entries(store)[0].authors == ("Ada B", "Cy D")  # what was unknown is filled in
    again = about(question, store, known, TODAY + timedelta(days=FRESH_DAYS - 1))
    assert again.papers == ()
    assert fetch(store, reader, again, TODAY).num_pages == 0
    assert about(question, store, known, TODAY + timedelta(days=FRESH_DAYS)).papers == (NEW, OLD)
    assert all_records(store).keys() == {NEW.id}  # nothing is said of the other


def test_a_paper_that_a_page_does_not_know_is_passed_over_and_one_that_has_not_changed_keeps_its_record(
    server, store, reader
):
    server.tell("/p/2611.00001", answer(of_page(), ETag='"1"'))
    server.tell("/p/2401.00002", (404, {}, b'{"error": "Paper not found"}'))
    question = Question(source="pages", base=f"{server.url}/p")
    found = fetch(store, reader, about(question, store, (NEW, OLD), TODAY), TODAY)
    assert (found.num_asked, found.num_records, found.is_complete, found.skipped) == (2, 1, True, ())
    assert all_entries(store) == ()  # a paper that comes with orrery does not become a new one
    later = TODAY + timedelta(days=FRESH_DAYS)
    again = fetch(store, reader, about(question, store, (NEW,), later), later)
    assert server.inputs[-1][1]["If-None-Match"] == '"1"'
    assert (again.num_unchanged, all_records(store)[NEW.id][0].num_votes) == (1, 87)
    assert not_asked(store, "pages", (NEW,), later) == ()


def test_a_broken_fetch_goes_on_with_the_papers_that_are_left(server, store, reader):
    server.tell("/p/2611.00001", answer(of_page()))
    server.tell("/p/2401.00002", (403, {}, b""))
    question = Question(source="pages", base=f"{server.url}/p")
    broken = fetch(store, reader, about(question, store, (NEW, OLD), TODAY), TODAY)
    assert (broken.num_asked, broken.is_complete) == (1, False)
    server.tell("/p/2401.00002", answer(of_page("2401.00002", "Caches of yesterday")))
    rest = about(question, store, (NEW, OLD), TODAY)
    assert rest.papers == (OLD,)
    assert fetch(store, reader, rest, TODAY).num_records == 1


def test_openreview_is_asked_by_title_and_only_that_title_counts(server, store, reader):
    hits = [of_openreview("Caches of tomorrow, again", forum="z"), of_openreview("Caches of Tomorrow")]
    server.tell("/or/notes/search", answer({"notes": hits, "count": 2}))
    question = about(Question(source="openreview", base=f"{server.url}/or"), store, (NEW,), TODAY)
    assert fetch(store, reader, question, TODAY).num_records == 1
    query = parse_qs(urlsplit(server.inputs[0][0]).query)
    assert (query["term"], query["content"], query["source"]) == (["Caches of tomorrow"], ["title"], ["forum"])
    assert all_records(store)[NEW.id][0].url.endswith("aB-9")


def test_a_search_ends_with_its_hits_and_its_records_follow_papers_that_are_known(server, store, reader):
    save_entries(store, [Entry(id=NEW.id, title=NEW.title, abstract="Words.", source="arxiv")], TODAY)
    server.tell("/or/notes/search", answer({"notes": [of_openreview(), of_openreview("Other")], "count": 2}))
    question = Question(source="openreview", query="cache", base=f"{server.url}/or", page_papers=2)
    found = fetch(store, reader, question, TODAY)
    assert (found.saved.num_new, found.num_pages, found.is_list) == (1, 1, True)
    assert all_records(store).keys() == {NEW.id, title_id("Other")}


def test_records_move_when_a_paper_gets_its_number(server, store, reader):
    save_entries(store, [Entry(id=title_id(NEW.title), title=NEW.title, abstract="Words.", source="page")], TODAY)
    server.tell("/or/notes/search", answer({"notes": [of_openreview()], "count": 1}))
    known = (Known(id=title_id(NEW.title), title=NEW.title),)
    fetch(store, reader, about(Question(source="openreview", base=f"{server.url}/or"), store, known, TODAY), TODAY)
    save_entries(store, [Entry(id=NEW.id, title=NEW.title, abstract="Words.", source="arxiv")], TODAY)
    assert all_records(store).keys() == {NEW.id}


def test_addresses_of_searches():
    since = date(2026, 11, 1)
    url = url_of(Question(source="scholar", query="kv cache", since=since, page_papers=50), 2, TODAY)
    query = parse_qs(urlsplit(url).query)
    assert url.startswith("https://api.semanticscholar.org/graph/v1/paper/search?")
    assert (query["offset"], query["limit"], query["publicationDateOrYear"]) == (["100"], ["50"], ["2026-11-01:"])
    assert "tldr" not in query["fields"][0]
    assert url_of(Question(source="pages", query="kv cache"), 0, TODAY).endswith("/papers/search?q=kv+cache&limit=100")
    assert all(source.interval_s >= 1.0 for source in SOURCES.values())


def test_a_busy_server_is_asked_again_after_as_long_as_it_says(server, store, reader, fake_time):
    server.tell("/s2/paper/batch", (429, {"Retry-After": "7"}, b""), answer([of_scholar()]))
    question = about(Question(source="scholar", base=f"{server.url}/s2"), store, (NEW,), TODAY)
    assert fetch(store, reader, question, TODAY).num_records == 1
    assert fake_time.waits == [7.0]
    assert len(server.bodies) == 2

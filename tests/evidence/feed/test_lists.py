"""Named lists: made, filled, renamed, deleted; in files of JSON and BibTeX, and as feeds."""

import json
from datetime import date
from xml.etree import ElementTree as Xml

import pytest

from orrery.evidence.digest.feeds import ATOM, Feed, FeedItem, atom_of, rss_of
from orrery.evidence.digest.list_feed import cited_lists, feed_of_list
from orrery.evidence.feed import lists
from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.lists import PaperList
from orrery.evidence.feed.marks import Marks, read_marks
from orrery.evidence.feed.marks_file import marks_json, read_marks_file
from orrery.evidence.feed.saved_entries import save_entries
from orrery.evidence.feed.store import Store
from orrery.evidence.find.bibtex_file import read_bibtex

ONE, TWO = date(2026, 11, 1), date(2026, 11, 2)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "mine.sqlite") as found:
        yield found


def test_a_list_is_made_filled_renamed_and_deleted(store):
    assert lists.read_lists(store) == ()
    assert lists.make_list(store, "  to   read ") == "to read"
    lists.add_papers(store, "TO READ", ["2401.09670"], ONE)
    lists.add_papers(store, "to read", ["2404.14469", "2401.09670", "2404.14469"], TWO)
    assert lists.get_list(store, "to read").papers == (("2404.14469", TWO), ("2401.09670", ONE))
    assert lists.rename_list(store, "to read", "To Read") == "To Read"  # only its letters
    assert lists.rename_list(store, "to read", "später") == "später"
    lists.remove_papers(store, "SPÄTER", ["2401.09670", "9999.99999"])
    assert lists.read_lists(store) == (PaperList(name="später", papers=(("2404.14469", TWO),)),)
    lists.delete_list(store, "später")
    assert lists.read_lists(store) == ()
    assert store.rows("select * from listed") == []


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a,b", "a{b", "a\\b", "a/b", "..", "\0"])
def test_a_name_that_cannot_be_kept_is_refused(store, name):
    with pytest.raises(FeedError, match="write 1 to 80 letters"):
        lists.make_list(store, name)


def test_what_is_there_or_is_not_there_is_said(store):
    lists.make_list(store, "moe")
    lists.make_list(store, "cache")
    with pytest.raises(FeedError, match="there is a 'MOE' already"):
        lists.make_list(store, "MOE")
    with pytest.raises(FeedError, match="there is a 'cache' already"):
        lists.rename_list(store, "moe", "cache")
    for change in (lists.delete_list, lists.get_list):
        with pytest.raises(FeedError, match="there is no 'x'; known: cache, moe"):
            change(store, "x")


def test_lists_have_limits(store, monkeypatch):
    monkeypatch.setattr(lists, "MAX_LISTS", 1)
    monkeypatch.setattr(lists, "MAX_PAPERS", 2)
    lists.make_list(store, "moe")
    with pytest.raises(FeedError, match="1 are the most"):
        lists.make_list(store, "cache")
    with pytest.raises(FeedError, match="would have 3; 2 at most"):
        lists.add_papers(store, "moe", ["1", "2", "3"], ONE)


def test_a_paper_that_gets_its_number_stays_on_its_lists(store):
    save_entries(store, [Entry(id="title:abc", title="A paper", abstract="", source="x")], ONE)
    lists.make_list(store, "moe")
    lists.add_papers(store, "moe", ["title:abc"], ONE)
    save_entries(store, [Entry(id="2611.00001", title="A paper", abstract="", source="x")], TWO)
    assert lists.get_list(store, "moe").ids == ("2611.00001",)


def test_lists_go_through_json_and_grow(store, tmp_path):
    lists.make_list(store, "moe")
    lists.add_papers(store, "moe", ["2401.09670"], ONE)
    lists.add_papers(store, "moe", ["2404.14469"], ONE)
    path = tmp_path / "marks.json"
    path.write_text(json.dumps(marks_json(read_marks(store))))
    found = read_marks_file(path).lists
    assert found == lists.read_lists(store)
    with Store(tmp_path / "other.sqlite") as other:
        lists.make_list(other, "MoE")
        lists.merge_lists(other, found)
        lists.merge_lists(other, found)  # twice is once
        assert lists.read_lists(other) == (PaperList(name="MoE", papers=found[0].papers),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"lists": []}', "write a table of lists"),
        ('{"lists": {"moe": ["2401.09670"]}}', "write a table: a paper"),
        ('{"lists": {"moe": {"2401.09670": "today"}}}', "write a day such as"),
        ('{"lists": {"a,b": {}}}', "write 1 to 80 letters"),
    ],
)
def test_lists_that_are_none_are_refused(tmp_path, text, says):
    path = tmp_path / "marks.json"
    path.write_text(text)
    with pytest.raises(FeedError, match=says):
        read_marks_file(path)


def test_lists_go_through_bibtex_as_keywords(store, tmp_path):
    for name, ids in {"R&D 100%": ["2401.09670"], "moe": ["2401.09670", "2404.14469"]}.items():
        lists.make_list(store, name)
        lists.add_papers(store, name, ids, ONE)
    texts = cited_lists(store, lists.read_lists(store))
    assert len(texts) == 2  # each paper once
    assert sum("keywords = {moe, R\\&D 100\\%}" in text for text in texts) == 1
    path = tmp_path / "mine.bib"
    path.write_text("\n\n".join(texts))
    found = {one.name: set(one.ids) for one in read_bibtex(path, "mine")}
    assert found == {one.name: set(one.ids) for one in lists.read_lists(store)}


BIBTEX = """% another program's
@string{me = "x"}
@article{a, title={Some {Nested} title}, eprint = "2401.09670v2", keywords = "moe, to read"}
@inproceedings{b,
  title = {{Only a Title}}, year = 2024,
}
"""


def test_another_programs_bibtex_is_read(tmp_path):
    path = tmp_path / "refs.bib"
    path.write_text(BIBTEX)
    found = {one.name: one.ids for one in read_bibtex(path, "refs")}
    assert found["moe"] == found["to read"] == ("2401.09670",)
    assert found["refs"][0].startswith("title:")
    for text, says in (("", "has no entry"), ("@misc{a, title = {x", "has no end")):
        path.write_text(text)
        with pytest.raises(FeedError, match=says):
            read_bibtex(path, "refs")


def test_a_list_is_a_feed(store):
    lists.make_list(store, "moe")
    lists.add_papers(store, "moe", ["2401.09670", "title:nothing known"], ONE)
    feed = feed_of_list(store, lists.get_list(store, "moe"), "http://x.example/f", "http://x.example/")
    rss = Xml.fromstring(rss_of(feed))
    assert rss.findtext("channel/link") == "http://x.example/"
    links = [item.findtext("link") for item in rss.iter("item")]
    assert links == [None, "https://arxiv.org/abs/2401.09670"]
    assert rss.findtext("channel/item/pubDate") == "Sun, 01 Nov 2026 00:00:00 GMT"
    atom = Xml.fromstring(atom_of(feed))
    assert [e.findtext(f"{{{ATOM}}}updated") for e in atom.iter(f"{{{ATOM}}}entry")] == ["2026-11-01T00:00:00Z"] * 2


def test_feeds_hold_hostile_words_as_text():
    item = FeedItem(id="x", title="</title><script>\x07", summary="a\x00b", updated=ONE, authors=("<b>",))
    feed = Feed(id="urn:x", title="]]>&", updated=ONE, items=[item])
    for text in (rss_of(feed), atom_of(feed)):
        assert "<script>" not in text
        Xml.fromstring(text)


def test_marks_without_lists_have_none():
    assert marks_json(Marks())["lists"] == {}

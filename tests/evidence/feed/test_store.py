"""The library's file: what is in it stays, whoever kills whom; and papers stand in it once."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from threading import Barrier

import pytest

from orrery.evidence.feed import store as opening
from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.marks import follow, mark, read_followed, read_marks
from orrery.evidence.feed.saved_entries import Saved, all_entries, counts_of, find_entry, get_entry, save_entries
from orrery.evidence.feed.store import VERSION, Store
from orrery.evidence.feed.text import title_id
from orrery.evidence.library import library_file, own_papers_folder

TODAY = date(2026, 11, 22)


def entry(id="2611.00001", title="Cold Tokens", abstract="Words.", **more):
    return Entry(id=id, title=title, abstract=abstract, source="test", **more)


def test_a_paper_comes_back_as_it_went_in(store):
    whole = entry(
        authors=("Ada", "Cy"),
        num_authors=2,
        published=date(2026, 11, 1),
        updated=date(2026, 11, 2),
        organisation="Acme",
        categories=("cs.DC",),
        url="https://arxiv.org/abs/2611.00001",
        version=2,
        num_votes=3,
        num_comments=1,
    )
    assert save_entries(store, [whole], TODAY) == Saved(num_new=1)
    assert get_entry(store, "2611.00001") == whole
    assert find_entry(store, "arXiv:2611.00001v9") == whole
    assert find_entry(store, "cold tokens") == whole
    assert find_entry(store, "???") is None
    assert save_entries(store, [whole], TODAY) == Saved(num_same=1)
    assert all_entries(store, since=date(2026, 11, 2)) == ()


def test_a_later_version_replaces_the_words_and_an_earlier_one_does_not(store):
    save_entries(store, [entry(version=2, abstract="Second.", organisation="Acme")], TODAY)
    assert save_entries(store, [entry(version=3, abstract="Third.")], TODAY) == Saved(num_updated=1)
    assert save_entries(store, [entry(version=1, abstract="First.")], TODAY) == Saved(num_same=1)
    saved = get_entry(store, "2611.00001")
    assert (saved.abstract, saved.version, saved.organisation) == ("Third.", 3, "Acme")


def test_of_one_version_the_later_day_has_the_words_and_of_one_day_those_that_came_first(store):
    first, second = date(2026, 11, 1), date(2026, 11, 2)
    save_entries(store, [entry(abstract="First.", published=first)], TODAY)
    assert save_entries(store, [entry(abstract="Same day.", published=first)], TODAY) == Saved(num_same=1)
    assert save_entries(store, [entry(abstract="No day.")], TODAY) == Saved(num_same=1)
    assert save_entries(store, [entry(abstract="Second.", updated=second)], TODAY) == Saved(num_updated=1)
    assert save_entries(store, [entry(abstract="Earlier.", published=first)], TODAY) == Saved(num_same=1)
    saved = get_entry(store, "2611.00001")
    assert (saved.abstract, saved.published, saved.updated) == ("Second.", first, second)


def test_a_paper_without_an_id_is_the_one_of_its_title_and_takes_its_marks_along(store):
    nameless = entry(id=title_id("COLD tokens"), title="COLD tokens", num_comments=4)
    save_entries(store, [nameless], TODAY)
    mark(store, [nameless.id], is_upvoted=True)
    assert save_entries(store, [entry(published=date(2026, 11, 1))], TODAY) == Saved(num_updated=1)
    (only,) = all_entries(store)
    assert (only.id, only.num_comments) == ("2611.00001", 4)
    assert read_marks(store).upvoted == {"2611.00001"}
    assert list(counts_of(store)) == ["2611.00001"]
    assert save_entries(store, [nameless], TODAY) == Saved(num_same=1)
    save_entries(store, [entry(id="2611.00002")], TODAY)
    assert len(all_entries(store)) == 2, "two ids are two papers, whatever they are called"


def test_counts_of_votes_are_kept_by_day(store):
    for day, votes in ((20, 3), (22, 9), (22, 10)):
        save_entries(store, [entry(num_votes=votes)], date(2026, 11, day))
    assert [(c.seen_on.day, c.num_votes) for c in counts_of(store)["2611.00001"]] == [(20, 3), (22, 10)]


def test_marks_are_set_and_taken_back(store):
    mark(store, ["a", "b"], is_read=True)
    mark(store, ["b"], is_upvoted=True)
    mark(store, ["a"], is_read=False)
    follow(store, [read_followed(text) for text in ("layer:serving", "words:' kv  cache '", "technique:ring")])
    follow(store, [read_followed("layer:serving")])
    follow(store, [read_followed("technique:ring")], is_on=False)
    marks = read_marks(store)
    assert (marks.read, marks.upvoted) == ({"b"}, {"b"})
    assert (marks.layers, marks.techniques, marks.words) == (("serving",), (), ("' kv cache '",))
    for text in ("serving", "layer:", "colour:red"):
        with pytest.raises(FeedError, match="write layer:serving"):
            read_followed(text)


def test_a_transaction_is_all_or_nothing(store):
    def break_off():
        with store.transaction():
            save_entries(store, [entry()], TODAY)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    assert all_entries(store) == ()


def test_other_parts_keep_tables_in_the_same_file(store):
    for _ in range(2):
        store.extend("letters", "create table letters (name text); insert into letters values ('made once')")
    assert [row["name"] for row in store.rows("select name from letters")] == ["made once"]


def test_files_of_others_and_of_later_versions_are_left_alone(tmp_path):
    later = tmp_path / "later.sqlite"
    Store(later).close()
    with sqlite3.connect(later) as raw:
        raw.execute(f"pragma user_version = {VERSION + 1}")
    raw.close()
    with pytest.raises(FeedError, match=rf"is of version {VERSION + 1}, and this orrery reads up to {VERSION}"):
        Store(later)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as raw:
        raw.execute("create table theirs (x)")
    raw.close()
    with pytest.raises(FeedError, match="another program"):
        Store(other)
    words = tmp_path / "words.sqlite"
    words.write_text("this is no database, and longer than a header of a hundred bytes. " * 3)
    with pytest.raises(FeedError, match="cannot be used as a library"):
        Store(words)
    assert words.read_text().startswith("this is no")


def test_where_the_library_lies(tmp_path, monkeypatch):
    monkeypatch.setenv("ORRERY_LIBRARY", str(tmp_path / "mine.sqlite"))
    assert library_file() == tmp_path / "mine.sqlite"
    assert own_papers_folder() == tmp_path / "papers"
    assert library_file(Path("given.sqlite")) == Path("given.sqlite")
    monkeypatch.delenv("ORRERY_LIBRARY")
    assert library_file().name == "library.sqlite"


WRITER = """
    import sys
    from datetime import date
    from pathlib import Path
    from orrery.evidence.feed.entry import Entry
    from orrery.evidence.feed.saved_entries import save_entries
    from orrery.evidence.feed.store import Store

    store = Store(Path(sys.argv[1]))
    for page in range(100_000):
        ids = [f"26{page // 100:02d}.{page % 100:02d}{i:03d}" for i in range(20)]
        save_entries(store, [Entry(id=i, title=i, abstract="x" * 500, source="w") for i in ids], date(2026, 11, 22))
        print(page, flush=True)
"""


def test_what_was_committed_outlives_a_kill(tmp_path):
    path = tmp_path / "library.sqlite"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        done = -1
        while done < 5:
            done = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        done = max([done, *(int(line) for line in writer.stdout.read().split())])
    with Store(path) as store:
        assert store.rows("pragma integrity_check")[0][0] == "ok"
        saved = len(all_entries(store))
        assert saved % 20 == 0, "whole pages only"
        assert saved >= 20 * (done + 1)
        assert save_entries(store, [entry()], TODAY) == Saved(num_new=1)


def test_a_table_of_a_familiar_name_makes_no_library(tmp_path):
    other = tmp_path / "screws.sqlite"
    with sqlite3.connect(other) as raw:
        raw.execute("create table parts (name text)")
    raw.close()
    with pytest.raises(FeedError, match="another program"):
        Store(other)


def test_a_file_that_is_a_folder_or_was_cut_is_said_to_be_one(tmp_path):
    with pytest.raises(FeedError, match="cannot be used as a library"):
        Store(tmp_path)
    path = tmp_path / "library.sqlite"
    with Store(path) as store:
        save_entries(store, [entry(str(i), str(i), "x" * 500) for i in range(200)], TODAY)
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(FeedError, match="cannot be used as a library"), Store(path) as store:
        all_entries(store)


def test_who_waits_for_another_writer_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("orrery.evidence.feed.store.PATIENCE_S", 0.01)
    path = tmp_path / "library.sqlite"
    says = pytest.raises(FeedError, match="another program has been writing")
    with Store(path) as one, Store(path) as other, one.transaction(), says:
        save_entries(other, [entry()], TODAY)


def test_bytes_that_are_no_letters_are_refused(store):
    with pytest.raises(FeedError, match="write it in UTF-8"):
        find_entry(store, "caf\udce9")


OPENER = """
import sys
from pathlib import Path
from orrery.evidence.feed.store import Store

sys.stdin.readline()
Store(Path(sys.argv[1])).close()
"""


def test_many_may_make_the_same_library_at_once(tmp_path):
    command = [sys.executable, "-c", OPENER, str(tmp_path / "library.sqlite")]
    openers = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for opener in openers:
        opener.stdin.write("go\n")
        opener.stdin.flush()
    assert [(opener.communicate(timeout=30)[1], opener.returncode) for opener in openers] == [("", 0)] * 4


def test_a_file_that_is_held_is_tried_again(tmp_path, monkeypatch):
    """SQLite says at once that a file is busy where waiting could last for ever, such as when its journal changes."""
    monkeypatch.setattr(opening, "PAUSE_S", 0.0)
    holds = iter((True, True, False))
    ours = Store._is_ours

    def held(self):
        if next(holds, False):
            error = sqlite3.OperationalError("locking protocol")
            error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
            raise error
        return ours(self)

    monkeypatch.setattr(Store, "_is_ours", held)
    with Store(tmp_path / "library.sqlite") as found:
        assert found.rows("select * from entries") == []
    holds = iter([True] * 1_000_000)
    monkeypatch.setattr(opening, "PATIENCE_S", 0.05)
    with pytest.raises(FeedError, match="another program has been writing"):
        Store(tmp_path / "library.sqlite")


def test_a_library_that_is_being_made_is_nobody_else_s(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "PATIENCE_S", 120.0)  # eight at once on a busy machine, each with its own flushes

    def opened(path):
        together.wait()
        with Store(path) as store:
            return len(store.rows("select * from entries"))

    for n in range(20):
        together = Barrier(8)
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(opened, [tmp_path / f"{n}.sqlite"] * 8)) == [0] * 8

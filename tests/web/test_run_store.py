"""The file of runs, and what may be written into it."""

import asyncio
import sqlite3
from collections.abc import Generator
from pathlib import Path

import pytest

from orrery.base.errors import ScenarioError
from orrery.web.place import place_at
from orrery.web.work import Work
from orrery.web.work.checked import check
from orrery.web.work.failed import WorkFailed
from orrery.web.work.run import Run
from orrery.web.work.run_progress import RunProgress
from orrery.web.work.store import Store

TINY = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "rate": "20",
    "input_tokens": "64",
    "output_tokens": "8",
    "num_requests": "40",
    "seed": "1",
}


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    found = Store(tmp_path / "runs.sqlite")
    yield found
    found.close()


def _run(id: str = "a", **more: object) -> Run:
    return Run(**({"id": id, "kind": "simulate", "settings": TINY, "options": {}, "created_s": 1.0} | more))  # pyright: ignore[reportArgumentType]


# -- the file --------------------------------------------------------------------------------------------------------


def test_a_run_goes_through_its_states(store: Store) -> None:
    store.add(_run())
    assert store.num_queued() == 1
    assert store.start("a")
    assert not store.start("a"), "nobody starts it twice"
    description = RunProgress(store, "a")
    description.phase("simulating", 40)
    store.count("a", "simulating", 25)
    found = store.get("a")
    assert found is not None
    assert (found.state, found.frac, found.text) == ("running", 25 / 40, "serving requests: 25 of 40")
    assert found.settings == TINY
    assert store.end("a", "done", "", {"answer": b"x" * 100_000})
    assert store.part("a", "answer") == b"x" * 100_000
    assert not store.cancel("a"), "what has ended is not cancelled"
    assert store.forget("a")
    assert store.get("a") is None
    assert store.part("a", "answer") is None, "its parts go with it"


def test_what_was_cancelled_stays_cancelled(store: Store) -> None:
    store.add(_run())
    store.start("a")
    assert not store.forget("a"), "what goes on cannot be deleted"
    assert store.cancel("a")
    assert not store.end("a", "done", "", {"answer": b"late"})
    found = store.get("a")
    assert found is not None
    assert found.state == "cancelled"
    assert store.part("a", "answer") is None


def test_progress_counts_only_in_its_phase(store: Store) -> None:
    store.add(_run())
    store.start("a")
    description = RunProgress(store, "a")
    description.phase("simulating", 10)
    description.phase("computing")
    store.count("a", "simulating", 7)
    found = store.get("a")
    assert found is not None
    assert (found.phase, found.done, found.frac) == ("computing", 0, None)
    description.step("sweeping", 1, 9)
    description.step("sweeping", 2, 9)  # too soon after
    description.step("sweeping", 9, 9)
    assert [store.get("a").done] == [9]  # pyright: ignore[reportOptionalMemberAccess]


def test_two_servers_see_one_file(tmp_path: Path, store: Store) -> None:
    other = Store(tmp_path / "runs.sqlite")
    for number in range(3):
        (store, other)[number % 2].add(_run(str(number), created_s=float(number)))
    assert [run.id for run in other.newest(10)] == [run.id for run in store.newest(10)] == ["2", "1", "0"]
    assert (store.start("0"), other.start("0")) == (True, False)
    other.interrupt()
    assert [run.state for run in store.newest(10)] == ["queued", "queued", "interrupted"]
    store.thin(1)
    assert [run.id for run in other.newest(10)] == ["2", "1"], "the oldest that have ended go; those that wait stay"
    other.close()


def test_a_file_that_is_none_is_said(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    path.write_bytes(b"not a database at all, " * 100)
    with pytest.raises(ScenarioError, match="move it away"):
        Store(path)
    path.unlink()
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(ScenarioError, match="another version"):
        Store(path)


# -- what may be asked -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "settings", "options", "message"),
    [
        ("simulat", {}, {}, "did you mean 'simulate'"),
        ("report", {}, {}, "no kind of run 'report'"),
        ("simulate", {"num_requests": "2000000"}, {}, "at most 1,000,000"),
        ("simulate", {"seq_len": "5"}, {}, "seq_len"),
        ("simulate", {"model": "/etc/passwd.json"}, {}, "is a path"),
        ("simulate", {}, {"window": "9:3"}, "START:END"),
        ("simulate", {"rate": "-1"}, {}, "rate"),
        ("capacity", {"rate": "", "concurrency": "4"}, {}, "capacity is a rate"),
        ("sweep", {}, {}, "nothing varies"),
        ("sweep", {}, {"sweep": ["tp=" + ",".join(map(str, range(1, 202)))]}, "too many here"),
        ("sweep", {}, {"sweep": ["model=./secrets/config.json"]}, "is a path"),
        ("sweep", {}, {"sweep": ["num_requests=10,9000000"]}, "at most 1,000,000"),
    ],
)
def test_what_makes_no_sense_is_refused_before_it_waits(
    kind: str, settings: dict[str, str], options: dict[str, object], message: str, tmp_path: Path
) -> None:
    inputs = {key: value for key, value in (TINY | settings).items() if value}
    with pytest.raises(ScenarioError, match=message):
        check(kind, inputs, options, tmp_path)


def test_at_most_fifty_wait(tmp_path: Path) -> None:
    work = Work(place_at(tmp_path))
    for _ in range(50):
        work.submit("simulate", TINY)
    with pytest.raises(WorkFailed, match="50 runs wait"):
        work.submit("simulate", TINY)
    work.cancel(work.list()[0].id)
    assert work.submit("simulate", TINY)
    asyncio.run(work.__aexit__(None, None, None))

"""Processes for short questions, and those of runs."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from orrery.scenario.schema import read_scenario
from orrery.scenario.simulate import NUM_COUNTS, RunObserver, SimulatedAnswer, served, simulate
from orrery.web.place import place_at
from orrery.web.work import Work
from orrery.web.work.failed import WorkFailed
from orrery.web.work.pool import Pool
from orrery.web.work.run import Run

EVAL = "builtins:eval"
"""Stands in for what answers: the question is an expression, the settings are its names."""

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
def pool() -> Generator[Pool]:
    found = Pool(1, within_s=1.0, answers=EVAL)
    yield found
    found.close()


# -- short questions -------------------------------------------------------------------------------------------------


def test_an_answer_comes_from_another_process_and_is_kept(pool: Pool) -> None:
    async def ask() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        question = "{'pid': __import__('os').getpid(), 'sum': a + b, 'at': __import__('time').time_ns()}"
        first = await pool.answer(question, {"a": 1, "b": 2})
        return first, await pool.answer(question, {"b": 2, "a": 1}), await pool.answer(question, {"a": 1, "b": 3})

    first, same, other = asyncio.run(ask())
    assert first["pid"] != os.getpid()
    assert (first["sum"], other["sum"]) == (3, 4)
    assert same is first, "settings in another order are the same question"
    assert other["pid"] == first["pid"], "the process stands ready for the next one"


def test_a_process_that_dies_or_sticks_is_replaced(pool: Pool) -> None:
    async def ask() -> None:
        with pytest.raises(WorkFailed, match="ended early"):
            await pool.answer("__import__('os')._exit(3)", {})
        with pytest.raises(WorkFailed, match="no answer within 1 s"):
            await pool.answer("__import__('time').sleep(60)", {})
        with pytest.raises(WorkFailed, match="ZeroDivisionError"):
            await pool.answer("1 / a", {"a": 0})
        assert await pool.answer("{'a': a}", {"a": 1}) == {"a": 1}

    asyncio.run(ask())


def test_nobody_waits_for_a_question_that_was_dropped(pool: Pool, tmp_path: Path) -> None:
    touch = "__import__('pathlib').Path(path).touch()"

    async def ask() -> None:
        long = asyncio.ensure_future(pool.answer("__import__('time').sleep(0.4)", {}))
        await asyncio.sleep(0)
        dropped = [asyncio.ensure_future(pool.answer(touch, {"path": str(tmp_path / str(n))})) for n in range(5)]
        retained = [asyncio.ensure_future(pool.answer(touch, {"path": str(tmp_path / "kept")})) for _ in range(2)]
        await asyncio.sleep(0.05)
        for one in (*dropped, retained[0]):
            one.cancel()
        await asyncio.gather(long, *dropped, *retained, return_exceptions=True)
        assert not retained[1].cancelled()

    asyncio.run(ask())
    assert [path.name for path in tmp_path.iterdir()] == ["kept"], "who still waits is answered, nobody else"


def test_a_question_is_answered_behind_the_page_though_nobody_waits(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def until_known(question: str) -> dict[str, int]:
        for _ in range(1000):
            if (found := pool.known(question, {"a": 1})) is not None:
                return found
            time.sleep(0.01)
        raise AssertionError("never known")

    assert pool.known("{'sum': a + 1}", {"a": 1}) is None, "it is begun, not waited for"
    assert until_known("{'sum': a + 1}") == {"sum": 2}
    with pytest.raises(WorkFailed, match="ZeroDivisionError"):
        until_known("a / 0")
    with pytest.raises(WorkFailed, match="ZeroDivisionError"):
        pool.known("a / 0", {"a": 1})
    monkeypatch.setattr("orrery.web.work.pool.FAILED_S", 0.0)
    assert pool.known("a / 0", {"a": 1}) is None, "after a while it is tried again"


def test_too_many_questions_are_refused(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orrery.web.work.pool.MAX_WAITING", 2)

    async def ask() -> list[object]:
        inputs = [pool.answer("__import__('time').sleep(a)", {"a": n / 100}) for n in range(3)]
        return await asyncio.gather(*inputs, return_exceptions=True)

    assert [type(one).__name__ for one in asyncio.run(ask())] == ["NoneType", "NoneType", "WorkFailed"]


# -- progress --------------------------------------------------------------------------------------------------------


def test_whoever_looks_changes_nothing() -> None:
    counts, phases = np.zeros(NUM_COUNTS, dtype=np.int64), list[tuple[str, int]]()
    watch = RunObserver(counts=counts, on_phase=lambda name, total, _: phases.append((name, total)))
    inputs = read_scenario(TINY)
    seen, alone = simulate(inputs, watch=watch), simulate(inputs)
    assert isinstance(seen, SimulatedAnswer)
    assert isinstance(alone, SimulatedAnswer)
    assert served(counts) == 40
    assert phases == [("generating", 0), ("simulating", 40), ("computing", 0)]
    for column in ("arrive_s", "first_token_s", "finish_s", "timeline", "gap_counts"):
        np.testing.assert_array_equal(getattr(seen.simulated, column), getattr(alone.simulated, column))


# -- real processes --------------------------------------------------------------------------------------------------


async def _until(work: Work, id: str, *states: str, within_s: float = 240.0) -> Run:
    """The run, once it is in one of these states."""
    end_s = time.monotonic() + within_s
    while (found := work.get(id)) is not None and found.state not in states and time.monotonic() < end_s:
        await asyncio.sleep(0.05)
    assert found is not None
    assert found.state in states, found
    return found


@pytest.mark.slow
def test_runs_end_each_in_its_own_way(tmp_path: Path) -> None:
    async def go() -> None:
        async with Work(place_at(tmp_path)) as work:
            long = work.submit("simulate", TINY | {"num_requests": "1000000", "output_tokens": "900"})
            good = work.submit("simulate", TINY, {"window": "0:1"})
            swept = work.submit("sweep", TINY, {"sweep": ["tp=1,2"]})
            large = work.submit("simulate", TINY | {"model": "llama-3.1-405b"})
            await _until(work, long, "running")
            while not (seen := work.get(long)) or seen.phase != "simulating":
                await asyncio.sleep(0.05)
            assert work.cancel(long)
            assert (await _until(work, good, "done")).message == ""
            assert b"request_throughput" in (work.part(good, "answer") or b"")
            assert b"machine" in (work.part(good, "steps") or b"")
            assert b"tp=2" in (work.part(swept, "rows") or b"") or (await _until(work, swept, "done"))
            await _until(work, large, "done")
            assert b"infeasible" in (work.part(large, "answer") or b"")
            assert (await _until(work, long, "cancelled")).is_active is False
            left = work.submit("simulate", TINY | {"num_requests": "1000000", "output_tokens": "900"})
            await _until(work, left, "running")
        again = Work(place_at(tmp_path))
        assert (await _until(again, left, "interrupted")).ended_s is not None
        await again.__aexit__(None, None, None)

    asyncio.run(go())


SERVER = """
import asyncio, sys
from pathlib import Path
from orrery.web.place import place_at
from orrery.web.work import Work

async def live():
    async with Work(place_at(Path(sys.argv[1]))):
        await asyncio.sleep(600)

asyncio.run(live())
"""


def _children(pid: int) -> list[Path]:
    """The processes that another has started."""
    found: list[Path] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(stat.parent)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_nothing_is_lost_or_left_when_the_server_is_killed(tmp_path: Path) -> None:
    async def go() -> None:
        server = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)])
        try:
            work = Work(place_at(tmp_path))
            done = work.submit("simulate", TINY)
            await _until(work, done, "done")
            long = work.submit("simulate", TINY | {"num_requests": "1000000", "output_tokens": "900"})
            waits = work.submit("simulate", TINY | {"seed": "2"})
            while not (seen := work.get(long)) or seen.phase != "simulating":
                await asyncio.sleep(0.05)
            children = _children(server.pid)
            assert len(children) >= 2, "the run, and those that stand ready"
        finally:
            server.kill()
            server.wait()
        end_s = time.monotonic() + 20.0
        while any(child.exists() for child in children) and time.monotonic() < end_s:
            await asyncio.sleep(0.05)
        assert not any(child.exists() for child in children), "even while they compute"
        assert work.part(done, "answer")
        async with work:
            assert (await _until(work, waits, "done")).settings["seed"] == "2", "what waited goes on by itself"
            assert (await _until(work, long, "interrupted")).ended_s is not None

    asyncio.run(go())

"""Service that does the work: processes that stand ready for short questions, and a process for each run."""

import asyncio
import os
import secrets
import time
from collections.abc import Mapping
from functools import cached_property
from types import TracebackType
from typing import Any

from starlette.requests import Request

from orrery.base.errors import ScenarioError
from orrery.web.place import Place
from orrery.web.work.failed import WorkFailed
from orrery.web.work.pool import Pool
from orrery.web.work.run import Run
from orrery.web.work.runner import Runner
from orrery.web.work.store import Store

READY = 2
"""Processes for short questions."""

BEHIND_S = 120.0
"""Limit on an answer that no page waits for."""

MAX_WAITING = 50
"""Runs that wait for their turn; more are refused."""

MAX_KEPT = 500
"""Runs that are kept; of more, the oldest that have ended are dropped."""

WARM_AFTER_S = 1.0
"""The processes for short questions start so long after the server: the first page goes before."""

GONE_S = 0.5
"""How often is looked whether the asker is still there."""


class Work:
    """An asynchronous context; inside it, runs go on. Questions are answered, and runs can be asked for, anywhere."""

    def __init__(self, place: Place, size: int = READY) -> None:
        self._place, self._pool = place, Pool(size)
        self._behind = Pool(1, BEHIND_S)
        self._runner: Runner | None = None
        self._warming: asyncio.TimerHandle | None = None

    @cached_property
    def _store(self) -> Store:
        return Store(self._place.work_file)

    async def __aenter__(self) -> "Work":
        """Start the processes, a moment after the first page and without waiting for them."""
        self._warming = asyncio.get_running_loop().call_later(WARM_AFTER_S, self._pool.warm)
        most_running = max(1, (os.cpu_count() or 2) // 2)
        self._runner = Runner(self._place.work_file, self._place.uploads, most_running)
        self._runner.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End them; runs that go on are interrupted."""
        if self._warming is not None:
            self._warming.cancel()
        runner, self._runner = self._runner, None
        await asyncio.to_thread(self._end, runner)

    def _end(self, runner: Runner | None) -> None:
        if runner is not None:
            runner.stop()
        self._pool.close()
        self._behind.close()
        if "_store" in self.__dict__:
            self.__dict__.pop("_store").close()

    # -- short questions ----------------------------------------------------------------------------------------------

    async def answer(self, question: str, settings: Mapping[str, Any], asker: Request | None = None) -> dict[str, Any]:
        """The answer as ``to_json`` says it, in seconds: ``estimate``, ``plan``, ``train``, ``train-plan`` of a
        scenario's settings. With the request that asks, the question is dropped when nobody waits for it any more."""
        waits = asyncio.ensure_future(self._pool.answer(question, settings))
        try:
            while asker is not None and not waits.done():
                await asyncio.wait((waits,), timeout=GONE_S)
                if not waits.done() and await asker.is_disconnected():
                    raise WorkFailed(f"{question}: the client disconnected.")
            return await waits
        finally:
            waits.cancel()

    def known(self, question: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer where it is known, at once; else None, and a process of its own works on it behind the pages, in
        turn. What is wrong with the question is raised."""
        return self._behind.known(question, settings)

    # -- runs ---------------------------------------------------------------------------------------------------------

    def submit(self, kind: str, settings: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> str:
        """The id of a new run, which waits for its turn. ScenarioError where it makes no sense, WorkFailed where too
        many wait already. Settings are as in an address: names, and what was uploaded as ``upload:NAME``."""
        from orrery.web.work.checked import check

        check(kind, settings, options or {}, self._place.uploads)
        return self._queued(kind, settings, options or {})

    def _queued(self, kind: str, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        if self._store.num_queued() >= MAX_WAITING:
            raise WorkFailed(f"{MAX_WAITING} runs wait already; cancel some, or come back when they are done.")
        id = secrets.token_hex(8)
        self._store.add(Run(id=id, kind=kind, settings=dict(settings), options=dict(options), created_s=time.time()))
        self._store.thin(MAX_KEPT)
        self._wake()
        return id

    def report(self, id: str) -> str:
        """The id of a new run that reports on one that is done; ScenarioError where it is none."""
        run = self._store.get(id)
        if run is None or run.state != "done" or run.kind == "report":
            raise ScenarioError(f"report: {id[:40]} is no run with a result; wait until it is done.")
        return self._queued("report", run.settings, {**run.options, "as": run.kind, "of": id})

    def get(self, id: str) -> Run | None:
        """The run as it stands now, or None."""
        return self._store.get(id)

    def list(self) -> tuple[Run, ...]:
        """All runs, the newest first."""
        return self._store.newest(MAX_KEPT)

    def part(self, id: str, name: str) -> bytes | None:
        """A part of the result of a run that is done, such as ``answer``: JSON."""
        return self._store.part(id, name)

    def cancel(self, id: str) -> bool:
        """End a run that waits or goes on, and all its processes; False where it has ended already."""
        is_cancelled = self._store.cancel(id)
        self._wake()
        return is_cancelled

    def forget(self, id: str) -> bool:
        """Delete a run that has ended, with its result; False where it goes on."""
        return self._store.forget(id)

    def _wake(self) -> None:
        if self._runner is not None:
            self._runner.wake()

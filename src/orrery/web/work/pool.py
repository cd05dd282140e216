"""A few processes that stand ready, and the answers that they gave last.

Who asks the same at the same time waits for the same answer. A question that nobody waits for any more is not begun.
"""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock
from typing import Any

from orrery.base.errors import OrreryError
from orrery.web.work.answerer import ANSWERS, AnswerWorker
from orrery.web.work.failed import WorkFailed

MAX_ANSWERS = 128
"""Answers that are kept; one of a plan has some 100 kB."""

MAX_WAITING = 64
"""Questions that wait; more are refused."""

FAILED_S = 60.0
"""Pause before a question that failed in the background is tried again."""

WITHIN_S = 60.0
"""An answer that takes longer is no short one."""

Answer = dict[str, Any]


class PendingAnswer:
    """A question that is worked on, and how many wait for it."""

    __slots__ = ("answer", "num_waiting")

    def __init__(self, answer: "Future[Answer]") -> None:
        self.answer, self.num_waiting = answer, 0


class Pool:
    """``size`` processes. They start when the first question comes, or with ``warm``."""

    def __init__(self, size: int, within_s: float = WITHIN_S, answers: str = ANSWERS) -> None:
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="orrery-answer")
        self._idle: SimpleQueue[AnswerWorker | None] = SimpleQueue()
        for _ in range(size):
            self._idle.put(None)
        self._size, self._within_s, self._answered_by = size, within_s, answers
        self._lock, self._is_closed = Lock(), False
        self._every: set[AnswerWorker] = set()
        self._pending: dict[str, PendingAnswer] = {}
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._failed: OrderedDict[str, tuple[float, OrreryError]] = OrderedDict()

    def warm(self) -> None:
        """Start the processes, without waiting for them."""
        for _ in range(self._size):
            self._threads.submit(self._start_one)

    async def answer(self, question: str, settings: Mapping[str, Any]) -> Answer:
        """The answer, from memory where it was asked before; what is wrong with a question is raised as it is."""
        key = json.dumps([question, settings], sort_keys=True, default=str)
        with self._lock:
            if (known := self._answers.get(key)) is not None:
                self._answers.move_to_end(key)
                return known
            pending = self._pending.get(key) or self._begun(key, question, settings)
            pending.num_waiting += 1
        try:
            return await asyncio.shield(asyncio.wrap_future(pending.answer))
        finally:
            with self._lock:
                pending.num_waiting -= 1
                if not pending.num_waiting and self._pending.get(key) is pending and pending.answer.cancel():
                    del self._pending[key]

    def known(self, question: str, settings: Mapping[str, Any]) -> Answer | None:
        """The answer where it is there; else None, and it is worked on, whether or not anybody waits for it. What went
        wrong is raised for a while, and then tried again."""
        key = json.dumps([question, settings], sort_keys=True, default=str)
        with self._lock:
            if (known := self._answers.get(key)) is not None:
                self._answers.move_to_end(key)
                return known
            at_s, error = self._failed.get(key, (0.0, None))
            if error is not None and time.monotonic() - at_s < FAILED_S:
                raise error
            if key not in self._pending and len(self._pending) < MAX_WAITING:
                self._begun(key, question, settings).num_waiting += 1
        return None

    def close(self) -> None:
        """End the processes, whatever they do."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._is_closed = True
            every = tuple(self._every)
        for one in every:
            one.end()

    def _begun(self, key: str, question: str, settings: Mapping[str, Any]) -> PendingAnswer:
        if len(self._pending) >= MAX_WAITING:
            raise WorkFailed(f"{len(self._pending)} questions wait for an answer already; ask again in a moment.")
        plain = dict(settings)
        pending = self._pending[key] = PendingAnswer(self._threads.submit(self._answered, key, question, plain))
        return pending

    def _answered(self, key: str, question: str, settings: Mapping[str, Any]) -> Answer:
        """In a thread of the pool: there is an idle process for each of them."""
        answerer = self._idle.get()
        try:
            answerer = self._ready(answerer)
            found = answerer.ask(question, settings, self._within_s)
        except BaseException as error:
            with self._lock:
                self._pending.pop(key, None)
                if isinstance(error, OrreryError):
                    self._failed[key] = time.monotonic(), error
                    while len(self._failed) > MAX_ANSWERS:
                        self._failed.popitem(last=False)
            raise
        finally:
            self._idle.put(answerer)
        with self._lock:
            self._answers[key] = found
            self._pending.pop(key, None)
            while len(self._answers) > MAX_ANSWERS:
                self._answers.popitem(last=False)
        return found

    def _start_one(self) -> None:
        answerer = self._idle.get()
        try:
            answerer = self._ready(answerer)
        finally:
            self._idle.put(answerer)

    def _ready(self, answerer: AnswerWorker | None) -> AnswerWorker:
        """The process, or another in the place of one that has ended."""
        if answerer is not None and answerer.is_alive:
            return answerer
        made = AnswerWorker(self._answered_by)
        with self._lock:
            if answerer is not None:
                self._every.discard(answerer)
            self._every.add(made)
            is_late = self._is_closed
        if is_late:
            made.end()
        return made

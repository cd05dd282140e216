"""Runs of a sweep in processes of their own, each with one thread; each is the same run as in this process."""

import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import Any

from orrery.scenario.sweep.point import failed, run_point

Settings = Mapping[str, Any]
OnRun = Callable[[int, dict[str, Any]], None]

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What libraries read when they start: a process a core needs no threads beside it."""


def in_processes(todo: Mapping[int, Settings], jobs: int, finds_capacity: bool, folder: str, on_run: OnRun) -> None:
    """Run all of ``todo``, ``jobs`` at a time, and tell ``on_run`` of each by its number as it ends.

    Where a process dies (mostly for want of memory), what was left is run one by one, so that only the run that kills
    its process fails.
    """
    left = dict(todo)

    def done(number: int, found: dict[str, Any]) -> None:
        del left[number]
        on_run(number, found)

    with _one_thread():
        if jobs > 1 and len(left) > 1:
            _pooled(list(left.items()), min(jobs, len(left)), finds_capacity, folder, done)
        while left:
            first = next(iter(left))
            _pooled(list(left.items()), 1, finds_capacity, folder, done)
            if first in left:
                done(first, failed(MemoryError("the process of this run ended early; is there enough memory?")))


def _pooled(
    todo: Sequence[tuple[int, Settings]], jobs: int, finds_capacity: bool, folder: str, done: OnRun
) -> None:  # fmt: skip
    """One pool of processes; returns early where one of them dies."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        numbers: dict[Future[dict[str, Any]], int] = {}
        try:
            for number, settings in todo:
                numbers[pool.submit(run_point, settings, finds_capacity, folder)] = number
            for future in as_completed(numbers):
                done(numbers[future], future.result())
        except BrokenProcessPool:
            return
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def end_with_parent() -> None:
    """Let this process end as soon as the one that started it has, however that ended, and without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


@contextmanager
def _one_thread() -> Generator[None]:
    """Processes started meanwhile use one thread each; what was set before is set again afterwards."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

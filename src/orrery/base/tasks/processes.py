"""Tasks in processes of this machine, each with one thread."""

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.tasks.lost import Key, lost

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that libraries read when they start: a process a core needs no threads beside it."""


def in_processes(
    function: Callable[..., Any], todo: Mapping[Key, tuple[Any, ...]], jobs: int
) -> Iterator[tuple[Key, Any]]:
    """Run all of ``todo``, ``jobs`` at a time.

    Where a process dies (mostly for want of memory), the tasks left are run one by one, so that only the task that ends
    its process is lost. ScenarioError where no process gets as far as its first task.
    """
    left = dict(todo)
    with _one_thread():
        if jobs > 1 and len(left) > 1:
            for key, found in _pooled(function, list(left.items()), min(jobs, len(left))):
                del left[key]
                yield key, found
        while left:
            first = next(iter(left))
            for key, found in _pooled(function, list(left.items()), 1):
                del left[key]
                yield key, found
            if first in left:
                del left[first]
                yield first, lost(MemoryError("the process of this run ended early; is there enough memory?"))


def _pooled(
    function: Callable[..., Any], todo: Sequence[tuple[Key, tuple[Any, ...]]], jobs: int
) -> Iterator[tuple[Key, Any]]:
    """Run tasks in one pool of processes; ends early where one of them dies."""
    context = get_context("spawn")
    begun = context.Event()
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=begin, initargs=(begun,)) as pool:
        keys: dict[Future[Any], Key] = {}
        try:
            for key, arguments in todo:
                keys[pool.submit(function, *arguments)] = key
            for future in as_completed(keys):
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    break
                yield keys[future], lost(error) if error else future.result()
        except BrokenProcessPool:
            pass
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    if not begun.is_set():
        raise ScenarioError(
            'jobs: the processes ended while they started; in a script, write `if __name__ == "__main__":` around what '
            "asks for several jobs, as each process reads the script again, or write jobs=1."
        )


def begin(begun: Event) -> None:
    """Say that this process has started, and let it end with the one that started it."""
    begun.set()
    end_with_parent()


def end_with_parent() -> None:
    """Let this process end as soon as the one that started it has, however that ended, and without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


@contextmanager
def _one_thread() -> Generator[None]:
    """Let processes that start meanwhile use one thread each; the earlier values are set again afterwards."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

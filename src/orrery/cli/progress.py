"""While the user waits: one line where loading takes long, and a bar for many runs; all on standard error."""

import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

PATIENCE_S = 5.0
"""Loading the simulator takes less, unless rules from outside are compiled with it or the machine is busy."""

LOADING = "Loading the simulator; rules of installed packages are compiled at their first run."


@contextmanager
def patience(words: str = LOADING) -> Generator[None]:
    """Say what takes so long, where it does."""
    timer = threading.Timer(PATIENCE_S, lambda: print(words, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def bar(what: str) -> Generator[Callable[[int, int], None]]:
    """A bar that is told (done, total); nothing where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


MANY_REQUESTS, MANY_TOKENS = 20_000, 5_000_000
"""A simulation of fewer, with fewer to write in all, takes less than two seconds."""

FIRST_S, EVERY_S = 2.0, 0.25
"""When the count of a simulation is first shown, and how often."""


@contextmanager
def counted(counts: Any, index: int, total: int, num_tokens: int = 0) -> Generator[None]:
    """How many of ``total`` are done and how long the rest takes, read from ``counts[index]`` by a process of its own.

    The compiled loop holds the interpreter, so no thread of this process could show it. Nothing where standard error is
    no terminal, or for few.
    """
    if (total < MANY_REQUESTS and num_tokens < MANY_TOKENS) or not sys.stderr.isatty():
        yield
        return
    from multiprocessing import get_context

    process = get_context("spawn").Process(
        target=_count, args=(counts, index, total, os.getpid(), FIRST_S), daemon=True
    )
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _count(counts: Any, index: int, total: int, parent: int, first_s: float) -> None:
    """The life of that process: a line that is written over, until the parent ends it or is gone."""
    started = time.perf_counter()
    while os.getppid() == parent:
        time.sleep(EVERY_S)
        if (passed_s := time.perf_counter() - started) >= first_s:
            print(f"\r{line(counts[index], total, passed_s)}\x1b[K", end="", file=sys.stderr, flush=True)


def line(done: int, total: int, passed_s: float) -> str:
    """``12,000 of 50,000 requests simulated, 9 s left``."""
    left = f", {passed_s * (total - done) / done:,.0f} s left" if done else ""
    return f"{done:,} of {total:,} requests simulated{left}"

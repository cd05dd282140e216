"""While the user waits: one line about the first compilation, and a bar for many runs; all on standard error."""

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

PATIENCE_S = 3.0
"""Loading the compiled simulator takes less; only compiling it takes longer."""

COMPILING = "Compiling the simulator; this happens once and takes a minute or two."


@contextmanager
def patience(words: str = COMPILING) -> Generator[None]:
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

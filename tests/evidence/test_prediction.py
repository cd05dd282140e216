"""The modules behind a paper's predictions: what their import statements name, from any thread."""

import gc
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from orrery.evidence import prediction


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads that take turns as often as they can, within a collection of garbage too."""
    before, interval = gc.get_threshold(), sys.getswitchinterval()

    def pause(*_: object) -> None:
        time.sleep(0)

    gc.callbacks.append(pause)
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)
    yield
    gc.callbacks.remove(pause)
    gc.set_threshold(*before)
    sys.setswitchinterval(interval)


def deeper(frames: int, key: str) -> tuple[str, ...]:
    """Modules behind a paper, asked from a deeper stack: a clash in the parser is one of depths."""
    return deeper(frames - 1, key) if frames else prediction.modules_behind(key)


@pytest.mark.usefixtures("impatient")
def test_many_threads_get_the_same_modules():
    keys = prediction.reproduced_keys()[:12]
    alone = [prediction.modules_behind(key) for key in keys]
    assert sum(map(bool, alone)) > 6  # one that asks a command imports no mechanism
    prediction._imported.cache_clear()
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(deeper, [5 * (i % 6) for i in range(len(keys))], keys))
    assert together == alone

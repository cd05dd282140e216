"""A plugin of pytest: a test that takes too long, all its cases together, fails."""

import signal
import time
from collections import defaultdict
from collections.abc import Iterator

import pytest

LONGEST_S = 10.0


class TookTooLong(BaseException):
    """No `Exception`: hypothesis would run the test again to find a smaller example."""


_spent_s: dict[str, float] = defaultdict(float)


def _stop(signum: int, frame: object) -> None:
    raise TookTooLong(f"over {LONGEST_S:g} s")


def _limited(item: pytest.Item) -> Iterator[None]:
    test, started = item.nodeid.split("[")[0], time.monotonic()
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, max(LONGEST_S - _spent_s[test], 0.001))
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        _spent_s[test] += time.monotonic() - started


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Fixtures count."""
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """The test itself."""
    return (yield from _limited(item))

"""A plugin of pytest: a test that computes for too long, all its cases together, fails."""

import signal
import time
from collections import defaultdict
from collections.abc import Iterator

import pytest

LONGEST_S = 12.0


class TookTooLong(BaseException):
    """No `Exception`: hypothesis would run the test again to find a smaller example."""


_spent_s: dict[str, float] = defaultdict(float)


def _stop(signum: int, frame: object) -> None:
    raise TookTooLong(f"over {LONGEST_S:g} s")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Stop the test when its time is over, and its further cases at once."""
    test, started = pyfuncitem.nodeid.split("[")[0], time.process_time()
    left_s = LONGEST_S - _spent_s[test]
    if left_s <= 0.0:
        raise TookTooLong(f"{test}: its other cases took over {LONGEST_S:g} s")
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, left_s)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        _spent_s[test] += time.process_time() - started

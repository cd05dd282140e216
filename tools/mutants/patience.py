"""A plugin of pytest: a test that computes for too long, all its cases together, fails; so does a fixture."""

import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

LONGEST_S = 1.5


class TookTooLong(BaseException):
    """No `Exception`: hypothesis would run the test again to find a smaller example."""


_spent_s: dict[str, float] = defaultdict(float)


def _stop(signum: int, frame: object) -> None:
    raise TookTooLong(f"over {LONGEST_S:g} s")


@contextmanager
def _limited(whose: str) -> Iterator[None]:
    """Stop what is computed when the time of a test or a fixture is over, and its further cases at once."""
    started = time.process_time()
    left_s = LONGEST_S - _spent_s[whose]
    if left_s <= 0.0:
        raise TookTooLong(f"{whose}: its other cases took over {LONGEST_S:g} s")
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, left_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        _spent_s[whose] += time.process_time() - started


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """A limit on the function of a test."""
    with _limited(pyfuncitem.nodeid.split("[")[0]):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
    """A limit on a fixture, which may compute for every test of its file."""
    with _limited(f"{fixturedef.baseid}:{fixturedef.argname}"):
        return (yield)

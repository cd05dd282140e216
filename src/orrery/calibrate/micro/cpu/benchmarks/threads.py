"""Waking threads and processes, and the least that a call of NumPy takes."""

import os
import time
from collections.abc import Iterator
from functools import partial
from threading import Event, Thread

import numpy as np

from orrery.calibrate.micro.reading import Reading, of_samples, repeated, timed

ROUNDS = 1000
CALLS = 20_000


def threads(subject: object) -> Iterator[Reading]:
    """Two of Python's threads that wake each other, and two that pass a byte through pipes; half a round is one way."""
    yield of_samples("thread_wake_up", repeated(_events), "s", "one way, events of two Python threads")
    yield of_samples("pipe_wake_up", repeated(_pipes), "s", "one way, a byte in a pipe between two threads")


def calls(subject: object) -> Iterator[Reading]:
    """One addition of one number by NumPy."""
    one = np.zeros(1, dtype=np.float32)
    samples = timed(partial(np.add, one, one, one), CALLS)
    yield of_samples("numpy_call", samples, "s", "np.add of one number", per=CALLS)


def _events() -> float:
    here, there = Event(), Event()

    def reply() -> None:
        for _ in range(ROUNDS):
            there.wait()
            there.clear()
            here.set()

    other = Thread(target=reply)
    other.start()
    before = time.perf_counter()
    for _ in range(ROUNDS):
        there.set()
        here.wait()
        here.clear()
    took_s = time.perf_counter() - before
    other.join()
    return took_s / (2 * ROUNDS)


def _pipes() -> float:
    (read_there, write_here), (read_here, write_there) = os.pipe(), os.pipe()

    def reply() -> None:
        for _ in range(ROUNDS):
            os.write(write_there, os.read(read_there, 1))

    other = Thread(target=reply)
    other.start()
    before = time.perf_counter()
    for _ in range(ROUNDS):
        os.write(write_here, b"x")
        os.read(read_here, 1)
    took_s = time.perf_counter() - before
    other.join()
    for end in (read_there, write_here, read_here, write_there):
        os.close(end)
    return took_s / (2 * ROUNDS)


BENCHMARKS = (threads, calls)

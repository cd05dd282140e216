"""Tasks that workers of a cluster can import."""

import os
import time
from pathlib import Path


def noted(number, folder):
    """A task that leaves a note of where it ran, ends when it may go on, and gives what depends on its number alone."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    Path(folder, f"{number}-{node}-{os.getpid()}-{time.monotonic_ns()}").touch()
    until_s = time.monotonic() + 120.0
    while not Path(folder, "go on").exists() and time.monotonic() < until_s:
        time.sleep(0.02)
    return b"%d" % (number * number)


def busy(number):
    """Work for one core."""
    total = 0
    for i in range(18_000_000):
        total += i % (number + 7)
    return total


def waited(number):
    """A task that takes a while and no core."""
    time.sleep(0.5)
    return number

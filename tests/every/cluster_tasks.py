"""Tasks that workers of a cluster can import."""

import time
from pathlib import Path


def noted(number, folder):
    """A task that leaves a note of where it ran, takes a while, and gives what depends on its number alone."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    Path(folder, f"{number}-{node}-{time.monotonic_ns()}").touch()
    time.sleep(0.3)
    return b"%d" % (number * number)


def busy(number):
    """Work for one core."""
    total = 0
    for i in range(18_000_000):
        total += i % (number + 7)
    return total

"""The batches at which a host decides how long a step takes, and from which on its device does.

Where the host's work of a step (scheduling, sequence by sequence, and launches of what is no CUDA graph) is longer than
the kernels, a faster device gains nothing and a slower host is felt in full.
"""

import numpy as np
from numpy.typing import NDArray

from orrery.execution.batch import Ints
from orrery.execution.layout import Deployment
from orrery.serving.clock import steps_of, tick

SIZES: Ints = 2 ** np.arange(11, dtype=np.int64)
"""Sequences of a decode step, or prompts of a prefill step, that are tried: 1 to 1,024."""


def turn_notes(deployment: Deployment, input_tokens: float, context_tokens: float) -> tuple[str, ...]:
    """In which steps the host is the slower one; nothing where it never is."""
    sizes = SIZES.astype(np.float64)
    kinds = (
        ("decode steps", "sequences", steps_of(0.0, 0.0, 0.0, sizes, context_tokens)),
        ("prefill steps", "prompts", steps_of(sizes, input_tokens, input_tokens, 0.0, 0.0)),
    )
    slower: list[str] = []
    for steps, unit, batch in kinds:
        ticks = tick(deployment, batch)
        ranges = slow_ranges(ticks.host_s > ticks.done.time_s)
        slower += [f"{steps} of {' and '.join(ranges)} {unit}"] if ranges else []
    if not slower:
        return ()
    return (
        f"host: slower than the device in {', and in '.join(slower)} (powers of two); elsewhere the device decides",
    )


def slow_ranges(is_slow: NDArray[np.bool_]) -> list[str]:
    """Ranges of sizes in whose steps the host is slower, as text: ``up to 4``, ``64 and more``."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_slow, [False]))))
    return [_words(int(first), int(after) - 1) for first, after in edges.reshape(-1, 2)]


def _words(first: int, last: int) -> str:
    least, most = f"{SIZES[first]:,}", f"{SIZES[last]:,}"
    if first == 0:
        return "1" if last == 0 else f"up to {most}"
    if last == SIZES.size - 1:
        return f"{least} and more"
    return least if first == last else f"{least} to {most}"

"""Result of a simulated run: one entry a request, a timeline, and totals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.serving.requests import Floats, Ints, Requests

GAP_LEAST_S, GAP_BINS_PER_DECADE, GAP_DECADES = 1e-6, 1000, 10
"""The histogram of gaps between tokens: bins of 0.23 % from a microsecond to 10,000 s."""

TIMELINE = (
    "steps",
    "busy_s",
    "prompt_tokens",
    "decode_tokens",
    "running",
    "waiting",
    "kv_bytes",
    "energy_j",
    "arrivals",
    "finishes",
    "preemptions",
    "padded_tokens",
)
"""Columns of the timeline. ``running``, ``waiting`` and ``kv_bytes`` are integrals over time (divide by the width of
a bin for the mean), the rest are sums over the bin."""

STEP = ("machine", "start_s", "end_s", "prompt_tokens", "decode_tokens", "prompts", "decodes", "waiting", "kv_bytes")
"""Columns of the log of single steps, kept for a window of the run only."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulated:
    """One run. Times are seconds from its start; ``nan`` where something never happened."""

    requests: Requests
    arrive_s: Floats  # followers: when they really came
    admitted_s: Floats  # first time in a batch
    first_token_s: Floats
    finish_s: Floats  # nan: refused, because it can never fit
    cached_tokens: Ints  # prompt tokens that were found in the prefix cache
    preemptions: Ints
    machine: Ints  # that finished it
    gap_counts: Floats  # gaps between tokens of one request, by bin: see GAP_*
    gap_sum_s: float
    gap_squares_s2: float
    timeline_s: Floats  # left edges of the bins, b + 1 of them
    timeline: NDArray[np.float64]  # (b, len(TIMELINE)), over all machines
    step_log: NDArray[np.float64]  # (s, len(STEP))
    num_steps: int
    duration_s: float  # from the first arrival to the last finish
    num_machines: int
    num_devices: int
    energy_j: float
    kv_capacity_bytes: float  # of all machines
    idle_frac: float  # of the machines' time
    max_running: int  # the most sequences that one batch may hold
    counters: dict[str, float]  # by name: what a technique counts ("transferred_bytes", "accepted_tokens", …)
    notes: tuple[str, ...] = ()

"""A static batch that keeps no cache: every token of the output computes its whole context again.

Step i of an output reads in + i tokens of each request as if they were a prompt, so the run is the sum of n prompts::

    latency = sum over i < n of prompt(in + i)

A prompt's time is smooth in its length up to steps of the kernels' tiles, so it is priced at a few lengths, and the sum
taken by straight lines between them.
"""

from dataclasses import replace

import numpy as np

from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.workload import Workload

PRICED_LENGTHS = 9


def without_cache(deployment: Deployment, workload: Workload) -> Estimate | Infeasible:
    """The run's estimate; its TPOT is the mean time of what follows the first token."""
    count = max(1, round(workload.output_tokens))
    lengths = np.unique(np.linspace(workload.input_tokens, workload.input_tokens + count - 1, PRICED_LENGTHS).round())
    found: list[Estimate] = []
    for length in lengths:
        prompt = estimate(deployment, replace(workload, input_tokens=float(length), output_tokens=1.0))
        if isinstance(prompt, Infeasible):
            return prompt
        found.append(prompt)
    steps = np.arange(count) + workload.input_tokens
    time_s = np.interp(steps, lengths, [e.latency_s for e in found])
    latency_s = float(time_s.sum())
    return _as_run(found, workload, count, latency_s, ttft_s=float(time_s[0]))


def _as_run(prompts: list[Estimate], workload: Workload, count: int, latency_s: float, *, ttft_s: float) -> Estimate:
    """The last prompt's estimate with the run's times and rates; intervals as wide as a prompt's."""
    last, batch = prompts[-1], float(workload.batch_size)
    rate = batch / latency_s
    values = {
        "ttft_s": ttft_s,
        "tpot_s": (latency_s - ttft_s) / max(1, count - 1),
        "latency_s": latency_s,
        "requests_per_s": rate,
        "output_tokens_per_s": rate * count,
        "total_tokens_per_s": rate * (workload.input_tokens + count),
    }
    intervals = {
        m: last.intervals[near].scaled(v / getattr(last, near))
        for m, v in values.items()
        if (near := "latency_s" if m == "tpot_s" else m) in last.intervals
    }
    power = {"power_w": last.intervals["power_w"]} if "power_w" in last.intervals else {}
    return replace(
        last,
        **values,
        intervals=intervals | power,
        energy_j_per_token=last.power_w / (rate * count),
        own_notes=(*last.own_notes, "cache: none is kept, so every token computes its whole context again"),
    )

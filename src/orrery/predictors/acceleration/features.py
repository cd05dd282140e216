"""Features of a task before it runs: its traffic, and the roofs of model and device.

Times are the bare roofs: prompts over the peak, weights over the bandwidth. Most features are logarithms, so that a
tree's thresholds are ratios.
"""

import numpy as np
from numpy.typing import NDArray

from orrery.predictors.acceleration.methods import NARROW
from orrery.predictors.acceleration.task import Task

Floats = NDArray[np.float64]

WIDE_BYTES = 2.0

FEATURES = (
    "log_input",
    "log_output",
    "shared_share",
    "log_prefixes",
    "spread",
    "log_burstiness",
    "guessable",
    "log_prefill_s",
    "log_decode_s",
    "prefill_share",
    "log_load",
    "log_in_flight",
    "log_seats",
    "has_eight_bits",
)


def features(task: Task) -> Floats:
    """One row of ``FEATURES``."""
    placed = task.deployment()
    model, device = placed.model, placed.cluster.device
    peak = max(device.dense_flops_per_s.get(rate, 0.0) for rate in ("bf16", "fp16"))
    prompt = task.shared_tokens + task.input_tokens
    prefill_s = 2.0 * model.num_active_parameters * prompt / peak
    weights_bytes = WIDE_BYTES * model.num_parameters
    decode_s = WIDE_BYTES * model.num_active_parameters / device.memory_bandwidth_bytes_per_s
    alone_s = prefill_s + task.output_tokens * decode_s
    seats = (device.memory_capacity_bytes - weights_bytes) / (_cache_bytes(task) * (prompt + task.output_tokens))
    together = min(max(seats, 1.0), float(placed.engine.max_num_seqs))
    load = task.request_rate_per_s * (prefill_s + task.output_tokens * decode_s / together)
    return np.array(
        [
            np.log2(task.input_tokens),
            np.log2(task.output_tokens),
            task.shared_tokens / prompt,
            np.log2(task.num_prefixes),
            task.spread_ratio,
            np.log2(task.burstiness_ratio),
            task.guessable_frac,
            np.log2(prefill_s),
            np.log2(decode_s),
            prefill_s / alone_s,
            np.log2(load),
            np.log2(task.request_rate_per_s * alone_s),
            np.log2(max(seats, 2.0**-4)),
            float(any(rate in device.dense_flops_per_s for rate in NARROW)),
        ]
    )


def _cache_bytes(task: Task) -> float:
    """Keys and values of one token in all layers."""
    blocks = task.deployment().model.blocks
    return WIDE_BYTES * max(1.0, sum(b.count * b.mixer.cache_elements_per_token for b in blocks if b.mixer))

"""Two simple rivals that the scorecard sets beside orrery.

Roofline: the datasheet alone. A kernel takes the longer of its operations at the dense peak and its bytes at the full
bandwidth; a serving run is made of steps that do.

Closed form: five constants, fitted per device, format and engine (per engine for serving runs) on the fit rows,
by least squares on the logarithm of the error. For kernels and collectives::

    t = launch + ((compute / a + ramp)^p + (memory / b)^p)^(1/p)

and for serving runs, where a step reads the weights and the cache and multiplies for every token::

    step    = max(compute / a, memory / b) + per_step + per_sequence x sequences
    prefill = compute / a + per_prompt
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.evidence.checked import Checked
from orrery.evidence.row import Row
from orrery.evidence.serving_row import read_row
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.execution.shard import cache_of, shard
from orrery.numerics.registry import get_format
from orrery.serving.workload import Workload

Floats = NDArray[np.float64]

FEWEST = 8
"""Fit rows below which a group takes the constants of all groups together."""

ROOFLINE = np.array([1.0, 1.0, 0.0, 0.0, 0.0])


def roofline_s(compute_s: Floats, memory_s: Floats) -> Floats:
    """The longer of the two roofs."""
    return np.maximum(compute_s, memory_s)


def kernel_s(constants: Floats, compute_s: Floats, memory_s: Floats) -> Floats:
    """The five-constant form; ``constants`` are logarithms of launch, ramp, a, b, and p - 1."""
    launch, ramp, a, b, power = np.exp(constants)
    p = 1.0 + power
    joined = (compute_s / a + ramp) ** p + (memory_s / b) ** p
    return launch + joined ** (1.0 / p)


def fit_kernel(compute_s: Floats, memory_s: Floats, time_s: Floats) -> Floats:
    """Constants of the five-constant form for some rows."""
    start = np.log([max(float(time_s.min()) * 0.6, 1e-7), 1e-6, 0.7, 0.8, 1.0])
    some = slice(None, None, max(1, len(time_s) // 2000))

    def residual(x: Floats) -> Floats:
        return np.arctan(np.log(kernel_s(x, compute_s[some], memory_s[some]) / time_s[some]) * 5)

    bounds = np.log([[1e-8, 1e-8, 0.02, 0.02, 1e-3], [1e-2, 1e-2, 1.5, 3.0, 9.0]])
    return least_squares(residual, np.clip(start, bounds[0] + 1e-3, bounds[1] - 1e-3), bounds=bounds, max_nfev=60).x


def kernel_baselines(checked: Checked, keys: NDArray[np.str_], fit: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Roofline and closed form for every row; constants per key, from its fit rows."""
    compute_s, memory_s = checked.answers.compute_s, checked.answers.memory_s
    measured, known = checked.measured["time_s"], checked.scored("time_s")
    closed = np.full(len(known), np.nan)
    pooled = fit & known
    for key in np.unique(keys[known]):
        rows = known & (keys == key)
        mine = rows & fit
        chosen = mine if mine.sum() >= FEWEST else pooled
        if chosen.sum() >= FEWEST:
            constants = fit_kernel(compute_s[chosen], memory_s[chosen], measured[chosen])
            closed[rows] = kernel_s(constants, compute_s[rows], memory_s[rows])
    return roofline_s(compute_s, memory_s), closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the serving baselines know of a run."""

    mode: str
    sequences: float  # that decode together, over all devices
    requests: float
    input_tokens: float
    output_tokens: float
    devices: float
    replicas: float
    flop_s: float  # per token, on all devices
    weights_s: float  # to read all weights once, on the devices of one replica
    cache_s: float  # to read the cache of one token, per device of one replica


def read_run(cells: dict[str, str]) -> Run:
    """The run of one row that orrery answers."""
    deployment, workload = read_row(Row(cells))
    device, layout = deployment.cluster.device, deployment.layout
    each = layout.num_devices / layout.dp
    weights = shard(deployment).weight_bytes * layout.tp * layout.pp
    _, peak = device.peak_flops_per_s(get_format(deployment.formats.activations).rates)
    cache = cache_of(deployment).bytes_per_token
    bandwidth = device.memory_bandwidth_bytes_per_s
    return Run(
        mode=workload.mode,
        sequences=_sequences(deployment, workload),
        requests=float(workload.num_requests or workload.batch_size or workload.concurrency),
        input_tokens=workload.input_tokens,
        output_tokens=workload.output_tokens,
        devices=float(layout.num_devices),
        replicas=float(layout.dp),
        flop_s=2.0 * deployment.model.num_active_parameters / (peak * layout.num_devices),
        weights_s=weights / (bandwidth * each),
        cache_s=cache / bandwidth / layout.pp,
    )


def _sequences(deployment: Deployment, workload: Workload) -> float:
    """How many sequences decode together: what the mode says, and no more than the cache holds."""
    memory = memory_of(deployment)
    room = (
        1.0 if isinstance(memory, Infeasible) else memory.sequences(workload.input_tokens + workload.output_tokens / 2)
    )
    limit = max(1.0, min(room, float(deployment.engine.max_num_seqs))) * deployment.layout.dp
    requested = {
        "static": float(workload.batch_size),
        "closed": float(workload.concurrency),
        "offline": float(workload.num_requests or limit),
        "open": workload.request_rate_per_s,
    }
    return max(1.0, min(requested[workload.mode], limit))


def run_metric(constants: Floats, run: Run, metric: str) -> float:
    """A metric of one run; ``constants`` are a, b, per step, per sequence and step, per prompt."""
    a, b, per_step, per_sequence, per_prompt = constants
    context = run.input_tokens + run.output_tokens / 2
    own = run.sequences / run.replicas

    def step(sequences: float) -> float:
        compute_s = sequences * run.replicas * run.flop_s / a
        memory_s = (run.weights_s + sequences * context * run.cache_s) / b
        return max(compute_s, memory_s) + per_step + per_sequence * sequences

    prompt_s = max(run.input_tokens * run.flop_s * run.replicas / a, run.weights_s / b) + per_prompt
    if run.mode == "open":
        busy = min(0.99, run.sequences * (prompt_s + run.output_tokens * per_step) / run.replicas)
        own = max(1.0, run.sequences * run.output_tokens * step(1.0) / (1 - busy))
    tokens_s = own * prompt_s + run.output_tokens * step(own)
    rate = run.sequences / tokens_s if run.mode != "open" else run.sequences
    batch_prompt_s = own * prompt_s if run.mode == "static" else prompt_s
    tpot_s = step(own) if run.mode == "static" else tokens_s / max(run.output_tokens, 1.0)
    values = {
        "latency_s": batch_prompt_s + run.output_tokens * tpot_s,
        "ttft_s": batch_prompt_s,
        "tpot_s": tpot_s,
        "itl_s": tpot_s,
        "output_tokens_per_s": rate * run.output_tokens,
        "requests_per_s": rate,
        "total_tokens_per_s": rate * (run.input_tokens + run.output_tokens),
        "decode_tokens_per_s": run.sequences / tpot_s,
    }
    return values.get(metric, float("nan"))


def fit_runs(runs: list[Run], metrics: list[str], measured: list[float]) -> Floats:
    """Five constants for the runs of one engine, all metrics together."""
    target = np.log(measured)

    def residual(x: Floats) -> Floats:
        found = [run_metric(np.exp(x), r, m) for r, m in zip(runs, metrics, strict=True)]
        return np.arctan((np.log(found) - target) * 3)

    start = np.log([0.5, 0.7, 2e-3, 2e-5, 5e-3])
    bounds = np.log([[0.02, 0.05, 1e-6, 1e-8, 1e-6], [1.2, 1.2, 0.5, 0.05, 2.0]])
    return np.exp(least_squares(residual, start, bounds=bounds, max_nfev=40).x)

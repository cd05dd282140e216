"""Results of every acceleration on many tasks: mean latencies from simulated runs, one row a task.

Tasks are drawn over chats, documents, shared instructions and bursts, from devices that idle to devices that drown.
The rate is a share of what the device would put out with all requests at hand, so that it means the same everywhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orrery.base.experiment import Progress
from orrery.engine.streams import stream
from orrery.execution.memory import Infeasible
from orrery.predictors.acceleration.methods import METHODS, PLAIN, service
from orrery.predictors.acceleration.task import Task
from orrery.serving.estimate import estimate
from orrery.serving.simulation.simulate import simulate
from orrery.serving.workload import Workload

Floats = NDArray[np.float64]

DEVICES = (
    "h200-sxm",
    "h100-sxm",
    "a100-sxm-80gb",
    "mi300x",
    "l40s",
    "a10g",
    "l4",
    "t4",
    "v100-sxm-32gb",
    "rtx-4090",
    "rtx-3090",
    "rtx-4070",
    "m2-max",
    "jetson-agx-orin-64gb",
    "jetson-orin-nano-8gb",
)
"""From data centres to what stands on a desk or in a machine."""

MODELS = (
    "Qwen/Qwen2.5-0.5B",
    "meta-llama/Llama-3.2-1B",
    "meta-llama/Llama-3.2-3B",
    "Qwen/Qwen2.5-7B",
    "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen2.5-14B",
    "Qwen/Qwen2.5-32B",
)
LOADS = (0.02, 1.5)
"""Least and greatest rate, as a share of what the device would put out."""

NUM_REQUESTS = 120
"""Requests of one run: enough for a queue to build up, few enough for a history in a minute."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """Tasks, and the mean latency of each under the plain server and under every acceleration."""

    tasks: tuple[Task, ...]
    plain_s: Floats  # (tasks,)
    latency_s: Floats  # (tasks, accelerations in the order of METHODS); infinite where the model does not fit

    def rows(self, chosen: NDArray[np.intp]) -> "History":
        """Some of the tasks."""
        retained = map(int, chosen.tolist())
        return History(
            tasks=tuple(self.tasks[i] for i in retained), plain_s=self.plain_s[chosen], latency_s=self.latency_s[chosen]
        )


def latency_s(task: Task, method: str, seed: int) -> float:
    """Mean time from arrival to last token in one simulated run; infinite where the model does not fit."""
    found = simulate(service(task, method), task.requests(NUM_REQUESTS, seed), seed=seed)
    if isinstance(found, Infeasible):
        return math.inf
    return float(np.nanmean(np.subtract(found.finish_s, found.arrive_s)))


def simulated(tasks: Sequence[Task], seed: int, progress: Progress = lambda done, total: None) -> History:
    """The history of these tasks: all accelerations of a task see the same requests."""
    plain, rows = list[float](), list[list[float]]()
    for i, task in enumerate(tasks):
        plain.append(latency_s(task, PLAIN, seed + i))
        rows.append([latency_s(task, method, seed + i) for method in METHODS])
        progress(i + 1, len(tasks))
    return History(tasks=tuple(tasks), plain_s=np.array(plain), latency_s=np.array(rows).reshape(-1, len(METHODS)))


def drawn_tasks(count: int, seed: int) -> tuple[Task, ...]:
    """``count`` tasks on devices that hold their models in 16 bits."""
    rng, found = stream(seed, "tasks"), list[Task]()
    while len(found) < count:
        task = _drawn(rng)
        if (most_per_s := _capacity_per_s(task)) > 0:
            found.append(replace(task, request_rate_per_s=most_per_s * _log_uniform(rng, *LOADS)))
    return tuple(found)


def _drawn(rng: np.random.Generator) -> Task:
    has_shared = rng.random() < 0.6
    return Task(
        device=str(rng.choice(DEVICES)),
        model=str(rng.choice(MODELS)),
        input_tokens=round(_log_uniform(rng, 32, 4096)),
        output_tokens=round(_log_uniform(rng, 16, 1024)),
        shared_tokens=16 * round(_log_uniform(rng, 8, 384)) if has_shared else 0,
        num_prefixes=round(_log_uniform(rng, 1, 32)) if has_shared else 1,
        spread_ratio=float(rng.uniform(0.0, 1.5)),
        burstiness_ratio=_log_uniform(rng, 0.1, 2.0),
        guessable_frac=float(rng.uniform(0.0, 0.9)),
    )


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _capacity_per_s(task: Task) -> float:
    """Requests a second with all of them at hand; 0 where the model does not fit."""
    found = estimate(
        task.deployment(),
        Workload(
            mode="offline",
            input_tokens=task.shared_tokens + task.input_tokens,
            output_tokens=task.output_tokens,
            num_requests=NUM_REQUESTS,
        ),
    )
    return 0.0 if isinstance(found, Infeasible) else found.requests_per_s

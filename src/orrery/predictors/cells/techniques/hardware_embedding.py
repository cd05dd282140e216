"""Hardware embedding: a regressor taught over simulated machines, which knows a new one by ten reference networks.

The ten timings are all that it is given: they are the embedding, and the samples that a few gradient steps adapt to.
[lee-2021-help]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.predictors.cells.latency import Floats
from orrery.predictors.cells.learned import Fit, OnStep, Predictor, Samples
from orrery.predictors.cells.nas_bench_201 import nas_bench_201
from orrery.predictors.cells.pool import bench, devices_of
from orrery.predictors.cells.space import Cells
from orrery.predictors.learn.embedding import Adaptive, as_batch
from orrery.predictors.learn.network import Array, Parameters
from orrery.predictors.learn.train import Descent, value_and_gradients

SPACE = nas_bench_201()


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingKnobs:
    """The pool (kinds or makers of devices and images at once, by comma), the regressor, and how it is taught."""

    pool: str = "NVIDIA, cpu"
    batches: str = "1, 32, 256"
    references: int = 10
    timed: int = 500  # networks on every machine of the pool
    hidden: int = 32
    updates: int = 2
    steps: int = 200
    machines: int = 8  # of a step
    queries: int = 50  # networks that judge a machine in a step
    learning_rate: float = 5e-3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("hidden", "timed", "machines", "queries"):
            check_range(self, name, 1, 10_000)
        check_range(self, "references", 2, 1000)
        check_range(self, "updates", 0, 100)
        check_range(self, "steps", 1, 1_000_000)
        check_above(self, "learning_rate", 0.0)


def reference_cells(count: int) -> Cells:
    """The networks that every machine is asked to time."""
    return SPACE.draw(count, np.random.default_rng(201))


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A machine as the regressor meets it: logarithms of latencies, less the references' mean, over their spread."""

    log_mean_ratio: float
    log_spread_ratio: float
    z: Array

    @classmethod
    def of(cls, latency_s: Floats) -> "Embedded":
        """From the references' latencies."""
        logs = np.log(latency_s)
        mean, spread = float(logs.mean()), float(logs.std()) or 1.0
        return cls(log_mean_ratio=mean, log_spread_ratio=spread, z=((logs - mean) / spread).astype(np.float32))

    def target(self, latency_s: Floats) -> Array:
        """Target of the regressor."""
        return ((np.log(latency_s) - self.log_mean_ratio) / self.log_spread_ratio).astype(np.float32)


def rule(knobs: EmbeddingKnobs, on_step: OnStep) -> Fit:
    """Teaches the regressor; a machine is then fitted from the references' timings alone."""
    references = reference_cells(knobs.references)
    regressor = Adaptive(
        inputs=SPACE.num_columns, references=knobs.references, hidden=knobs.hidden, updates=knobs.updates
    )
    parameters = _taught(regressor, knobs, references, on_step)

    def fit(samples: Samples) -> Predictor:
        if samples.plan.space is not SPACE or not np.array_equal(samples.cells, references):
            raise ScenarioError(
                f"hardware-embedding: a machine is known by its timings of reference_cells({knobs.references}), in "
                "their order; time those."
            )
        known = Embedded.of(samples.latency_s)
        z, x = as_batch(known.z), as_batch(SPACE.encode(references))
        own = regressor.adapted(parameters, z, x, z)

        def predict(cells: Cells) -> Floats:
            prediction = regressor.predict(own, z, as_batch(SPACE.encode(cells)))[0].astype(np.float64)
            return np.exp(prediction * known.log_spread_ratio + known.log_mean_ratio)

        return predict

    return fit


def _taught(regressor: Adaptive, knobs: EmbeddingKnobs, references: Cells, on_step: OnStep) -> Parameters:
    """Adam on the loss after adaptation, a few machines of the pool at a time."""
    pool = _timed_pool(knobs.pool, knobs.batches, knobs.references, knobs.timed, knobs.seed)
    lines, z, targets, first = pool.lines, pool.z, pool.targets, SPACE.encode(references)
    rng = np.random.default_rng()
    rng.bit_generator.state = pool.state
    down, slope = Descent(regressor.start(rng)), value_and_gradients(regressor.loss)
    for step in range(knobs.steps):
        which = rng.integers(len(z), size=knobs.machines)
        queried = rng.integers(knobs.timed, size=knobs.queries)
        x = np.broadcast_to(first, (knobs.machines, *first.shape))
        more_x = np.broadcast_to(lines[queried], (knobs.machines, knobs.queries, lines.shape[1]))
        _, gradients = slope(down.parameters, z[which], x, z[which], more_x, targets[which][:, queried])
        down.step(gradients, knobs.learning_rate * (1.0 - 0.95 * step / knobs.steps))
        on_step()
    return down.parameters


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pool:
    """Machines that were timed: lines of the networks, every machine's embedding, and what the regressor should say of
    every network on it; with the random numbers that come next."""

    lines: Array
    z: Array
    targets: Array
    state: Mapping[str, Any]


@lru_cache(maxsize=2)
def _timed_pool(devices: str, batches: str, num_references: int, num_timed: int, seed: int) -> _Pool:
    """The pool, which takes longer to time than the regressor to teach."""
    rng = np.random.default_rng([seed, 31])
    cells, references = SPACE.draw(num_timed, rng), reference_cells(num_references)
    z: list[Array] = []
    targets: list[Array] = []
    for device in devices_of(devices):
        for batch in map(int, batches.split(",")):
            machine = bench(device, SPACE, batch, rng)
            known = Embedded.of(machine.samples(references, rng).latency_s)
            z.append(known.z)
            targets.append(known.target(machine.samples(cells, rng).latency_s))
    return _Pool(lines=SPACE.encode(cells), z=np.stack(z), targets=np.stack(targets), state=rng.bit_generator.state)


TECHNIQUE = Technique(
    name="hardware-embedding",
    extension_point="predictors.cell-latency",
    rule=rule,
    knobs=EmbeddingKnobs,
    gains="Ten timings on a new machine, with no data sheet and no rules.",
    costs="A pool of machines that were timed before, and no better than the pool is like the new one.",
    claims=("lee-2021-help",),
    command="orrery experiment few-shot-latency",
)

"""Errors of predicted latencies of cell networks, by rule and by the number of timed networks.

Networks of the DARTS space on a P100 by the kernel rules, with noise on every timing. Many images at once keep the
device busy, and latencies add up; few leave it waiting for launches, and what an operation costs depends on its
neighbours. [xu-2020-latency-aware-nas]
"""

from collections.abc import Iterator

import numpy as np

from orrery.base.experiment import Experiment, Progress, Row, counter
from orrery.catalog.devices import get_device
from orrery.predictors.cells import rule
from orrery.predictors.cells.darts import darts
from orrery.predictors.cells.learned import Bench, OnStep, Predictor, Samples
from orrery.predictors.cells.pool import bench
from orrery.predictors.learn.scores import score

DEVICE = "p100-pcie-16gb"
BATCHES = (32, 8)
SAMPLES = (1_000, 10_000, 40_000, 80_000)
HELD_OUT = 5_000
PERCEPTRON = "encoded-perceptron"


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """A row for every rule and number of samples; errors are against other networks, without the timings' noise."""
    tick = counter(progress, (len(SAMPLES) + len(BATCHES) - 1) * steps)
    rows: list[Row] = []
    for batch in BATCHES:
        sizes = SAMPLES if batch == BATCHES[0] else SAMPLES[-1:]
        rows += predicted(bench(get_device(DEVICE), darts(), batch), sizes, seed, steps, tick)
    return tuple(rows)


def predicted(machine: Bench, sizes: tuple[int, ...], seed: int, steps: int, tick: OnStep) -> Iterator[Row]:
    """The rows of one machine."""
    plan, rng = machine.truth.plan, np.random.default_rng([seed, 41])
    cells = plan.space.draw(max(sizes) + HELD_OUT, rng)
    every, others = machine.samples(cells[HELD_OUT:], rng), cells[:HELD_OUT]
    true_s = machine.truth.latency_s(others)

    def row(name: str, size: int, predictor: Predictor) -> Row:
        found = score(predictor(others), true_s)
        return {
            "batch": plan.batch,
            "rule": name,
            "num_samples": size,
            "median_error_frac": found.median_error_frac,
            "mean_error_frac": found.mean_error_frac,
            "p90_error_frac": found.p90_error_frac,
            "rank_correlation": found.rank_correlation,
        }

    for size in sizes:
        known = first(every, size)
        yield row(PERCEPTRON, size, rule(PERCEPTRON, tick, steps=steps, seed=seed)(known))
        for name in ("encoded-line", "flops-line"):
            yield row(name, size, rule(name)(known))
    yield row("operation-table", every.alone_s.size, rule("operation-table")(every))


def first(samples: Samples, size: int) -> Samples:
    """Take the first ``size`` of the timed networks."""
    return Samples(
        cells=samples.cells[:size], latency_s=samples.latency_s[:size], nominal=samples.nominal, alone_s=samples.alone_s
    )


EXPERIMENT = Experiment(
    name="cell-latency",
    question="How many timed networks does a latency predictor need, and what beats it?",
    run=run,
    num_steps=1000,
    claims=("xu-2020-latency-aware-nas",),
)

"""Predicting latencies on a new machine from ten timings: what was learnt elsewhere, against starting from nothing.

A regressor is taught over simulated NVIDIA GPUs and processors, and meets accelerators of other kinds and makers. On
each, ten networks of NAS-Bench-201 are timed. The physics refit knows the data sheet and the very rules that the
machines are simulated with, though not their constants: it shows what is left to gain, no more. [lee-2021-help]
"""

from collections.abc import Mapping

import numpy as np

from orrery.base.experiment import Experiment, Progress, Row, counter
from orrery.predictors.cells import rule
from orrery.predictors.cells.learned import Bench, Fit, OnStep
from orrery.predictors.cells.pool import bench, devices_of
from orrery.predictors.cells.techniques.hardware_embedding import SPACE, EmbeddingKnobs, reference_cells
from orrery.predictors.learn.scores import Scores, score

POOL = EmbeddingKnobs().pool
HELD_OUT = ("tpu", "npu", "dataflow", "AMD", "Apple")
"""Kinds and makers that the pool has none of."""

BATCHES = (1, 32, 256)
NUM_DEVICES = 2  # of each kind
NUM_TIMINGS = 10
NUM_JUDGES = 500  # networks that predictions are compared on
EMBEDDING, SCRATCH = "hardware-embedding", "encoded-perceptron"
SCRATCH_STEPS = 60
PLAIN = ("encoded-line", "flops-line", "operation-table", "physics-refit")


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """A row for every rule and kind of machine, then for all machines alike: means, and the worst ranking."""
    rng = np.random.default_rng([seed, 61])
    machines = {word: _machines(word, rng) for word in HELD_OUT}
    tick = counter(progress, steps + SCRATCH_STEPS * sum(map(len, machines.values())))
    rules = _rules(seed, steps, tick)
    found = {word: [_scores(rules, m, rng) for m in group] for word, group in machines.items()}
    found["all"] = [scores for group in found.values() for scores in group]
    return tuple(_row(word, name, [s[name] for s in group]) for word, group in found.items() for name in group[0])


def _rules(seed: int, steps: int, tick: OnStep) -> dict[str, Fit]:
    """Every rule, prepared."""
    return {
        EMBEDDING: rule(EMBEDDING, tick, steps=steps, seed=seed, references=NUM_TIMINGS),
        SCRATCH: rule(SCRATCH, tick, steps=SCRATCH_STEPS, seed=seed, batch=NUM_TIMINGS),
    } | {name: rule(name) for name in PLAIN}


def _machines(word: str, rng: np.random.Generator) -> list[Bench]:
    """A few simulated machines with devices of a kind or maker."""
    devices = devices_of(word, but=POOL)
    chosen = sorted(map(int, rng.permutation(len(devices))[:NUM_DEVICES]))
    return [bench(devices[i], SPACE, batch, rng) for i in chosen for batch in BATCHES]


def _scores(rules: Mapping[str, Fit], machine: Bench, rng: np.random.Generator) -> dict[str, Scores]:
    """Scores of every rule on one machine, on networks that it did not time."""
    timed = machine.samples(reference_cells(NUM_TIMINGS), rng)
    judges = machine.samples(SPACE.draw(NUM_JUDGES, rng), rng)
    found = {name: score(fit(timed)(judges.cells), judges.latency_s) for name, fit in rules.items()}
    return found | {"data sheet": score(machine.nominal.latency_s(judges.cells), judges.latency_s)}


def _row(word: str, name: str, scores: list[Scores]) -> Row:
    """Means over machines."""
    return {
        "machines": word,
        "num_machines": len(scores),
        "rule": name,
        "rank_correlation": float(np.mean([s.rank_correlation for s in scores])),
        "least_rank_correlation": min(s.rank_correlation for s in scores),
        "median_error_frac": float(np.mean([s.median_error_frac for s in scores])),
        "p90_error_frac": float(np.mean([s.p90_error_frac for s in scores])),
    }


EXPERIMENT = Experiment(
    name="few-shot-latency",
    question="What do ten timings on a new machine suffice for?",
    run=run,
    num_steps=200,
    claims=("lee-2021-help",),
)

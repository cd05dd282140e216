"""Predicting latencies on a new machine from ten timings: what was learnt elsewhere, against starting from nothing.

A regressor is taught over simulated NVIDIA GPUs and processors, and meets accelerators of other kinds and makers. On
each, ten networks of NAS-Bench-201 are timed. The physics refit knows the data sheet and the very rules that the
machines are simulated with, though not their constants: it shows what is left to gain, no more. [lee-2021-help]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Progress, Row, Run, counter, whole
from orrery.catalog.devices import get_device
from orrery.predictors.cells import rule
from orrery.predictors.cells.learned import Bench, Fit, OnStep, Samples
from orrery.predictors.cells.pool import bench, devices_of
from orrery.predictors.cells.techniques.hardware_embedding import SPACE, EmbeddingKnobs, reference_cells
from orrery.predictors.cells.timings import read_timings
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
OWN = (EMBEDDING, SCRATCH, "encoded-line", "flops-line")
"""Rules that need nothing of a machine but timings."""

ANY_DEVICE = "t4"
"""Device whose kernels are counted where none is named; rules without a data sheet do not look at their times."""

FEWEST_JUDGES = 3
PLAIN = ("encoded-line", "flops-line", "operation-table", "physics-refit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Pictures at once in the user's timings."""

    batch: int = 1


def run(request: Run) -> tuple[Row, ...]:
    """A row for every rule and kind of machine, then for all alike; or for every rule on the user's own machine."""
    if (table := request.data.get("table")) is not None:
        return own_machine(request, table)
    return simulated(request.seed, request.steps, request.progress)


def own_machine(request: Run, table: Path) -> tuple[Row, ...]:
    """Rules that ten of the user's timings adapt, judged by the user's other timings.

    ``device`` says whose data sheet the physics starts from; without one the rules that need none remain.
    """
    references = reference_cells(NUM_TIMINGS)
    latency_s, others, others_s = read_timings(table, SPACE, references)
    if len(others) < FEWEST_JUDGES:
        raise ScenarioError(
            f"{table}: has {len(others)} networks beside the ten; time {FEWEST_JUDGES} or more to judge."
        )
    batch = whole("batch", request.sizes.batch, most=4096)
    nominal = bench(request.device or get_device(ANY_DEVICE), SPACE, batch).nominal
    timed = Samples(cells=references, latency_s=latency_s, nominal=nominal, alone_s=nominal.alone_s())
    rules = _rules(request.seed, request.steps, counter(request.progress, request.steps + SCRATCH_STEPS))
    known = [*OWN, *(["physics-refit"] if request.device else [])]
    scores = {name: score(rules[name](timed)(others), others_s) for name in known}
    return tuple(_row("own", name, [found]) for name, found in scores.items())


def simulated(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
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
    judges = SPACE.draw(NUM_JUDGES, rng)
    true_s = machine.truth.latency_s(judges)
    found = {name: score(fit(timed)(judges), true_s) for name, fit in rules.items()}
    return found | {"data sheet": score(machine.nominal.latency_s(judges), true_s)}


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
    sizes=Sizes,
    reads=("table", "device"),
    keys=("machines", "rule"),
)

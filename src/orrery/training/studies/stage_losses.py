"""A whole run that loses pipeline stages: rolled back, computed twice, or made from neighbours. [checkfree-2025]

How many more steps losses cost is measured on a small model that loses stages at the same rate in each step.
"""

from dataclasses import dataclass

from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.training.recovery.measured import steps_with_losses
from orrery.training.recovery.network import Shape
from orrery.training.recovery.strategies import Outcome, StageFaults, computed_twice, from_neighbours, rolled_back


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Stages and how often each is lost within an hour; the whole run, its steps and what a loss or a save takes.

    ``twice_ratio`` is how much longer a step is in which each stage also computes its neighbour's forward pass.
    """

    stages: int = 4
    hourly_failure: str = "0.05,0.1"
    step_s: float = 90.0
    whole_steps: int = 10_000
    twice_ratio: float = 4.0 / 3.0
    replace_s: float = 30.0
    save_steps: int = 100
    hidden: int = 16
    batch: int = 64


def run(request: Run) -> tuple[Row, ...]:
    """A row a rate of failures and a way: steps over those without losses, and the seconds of the whole run."""
    sizes: Sizes = request.sizes
    shape = Shape(
        num_stages=whole("stages", sizes.stages, least=2, most=64),
        hidden_size=whole("hidden", sizes.hidden, most=512),
        num_batch=whole("batch", sizes.batch, most=4096),
    )
    rates = numbers("hourly_failure", sizes.hourly_failure, most=0.9)
    tick, rows = counter(request.progress, 2 * len(rates) + 1), list[Row]()
    alone = steps_with_losses(shape, request.steps, 0.0, seed=request.seed)
    tick()
    for rate in rates:
        faults = StageFaults(num_stages=sizes.stages, hourly_failure_frac=rate, replace_s=sizes.replace_s)
        q, count = faults.step_failure_frac(sizes.step_s), whole("whole_steps", sizes.whole_steps, most=10**9)
        save = whole("save_steps", sizes.save_steps, most=10**9)
        ways = {
            "rollback": (rolled_back(faults, count, sizes.step_s, save), 1.0),
            "redundant": (computed_twice(faults, count, sizes.step_s, step_ratio=sizes.twice_ratio), 1.0),
        }
        for way, swaps in (("neighbour-average", False), ("neighbour-average-swapped", True)):
            ratio = steps_with_losses(shape, request.steps, q, swaps_ends=swaps, seed=request.seed) / alone
            ways[way] = (from_neighbours(faults, count, sizes.step_s, 0.0, steps_ratio=ratio), ratio)
            tick()
        rows += [_row(rate, way, found, ratio) for way, (found, ratio) in ways.items()]
    return tuple(rows)


def _row(rate: float, way: str, found: Outcome, ratio: float) -> Row:
    return {
        "hourly_failure_frac": rate,
        "way": way,
        "good_steps_ratio": ratio,
        "step_s": found.step_s,
        "failures": found.num_failures,
        "run_s": found.time_s,
    }


EXPERIMENT = Experiment(
    name="stage-losses",
    question="Which way of recovering lost pipeline stages finishes a run first?",
    run=run,
    num_steps=200,
    claims=("checkfree",),
    sizes=Sizes,
    keys=("hourly_failure_frac", "way"),
    curve=("hourly_failure_frac", "run_s"),
)

"""Networks that start apart and average with neighbours: how long learning is held up, and whether scaling mends it."""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, whole
from orrery.training.small.gossip import gossip
from orrery.training.small.points import points_of
from orrery.training.small.workers import Workers

WAYS = {
    "averaged": (False, False),
    "averaged and scaled": (True, False),
    "averaged from one start": (False, True),
    "scaled from one start": (True, True),
}
"""Whether variance is kept, and whether all workers start alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Workers on a ring, and their own steps between two averages with both neighbours."""

    workers: int = 8
    every: int = 1


def run(request: Run) -> tuple[Row, ...]:
    """A row a step of each way: loss over that at the start, and spread of weights over theirs."""
    sizes: Sizes = request.sizes
    workers = whole("workers", sizes.workers, least=3, most=64)
    every = whole("every", sizes.every, most=request.steps)
    if request.steps * workers > 100_000:
        raise ScenarioError(f"steps: {request.steps} of {workers} workers; write 100,000 of all workers at most.")
    data = points_of(request.data, request.seed) if request.data else None
    problem = Workers(workers, request.seed, data)
    tick = counter(request.progress, len(WAYS))
    rows: list[Row] = []
    for way, (keeps_variance, shares_start) in WAYS.items():
        found = gossip(
            problem, steps=request.steps, every=every, keeps_variance=keeps_variance, shares_start=shares_start
        )
        pairs = zip(found.losses_ratio.tolist(), found.spreads_ratio.tolist(), strict=True)
        rows += [{"way": way, "step": step, "loss_ratio": a, "spread_ratio": b} for step, (a, b) in enumerate(pairs)]
        tick()
    return tuple(rows)


EXPERIMENT = Experiment(
    name="gossip-variance",
    question="Are networks that start apart held up by averaging, and does keeping their variance help?",
    run=run,
    num_steps=60,
    claims=("vanishing-variance-gossip",),
    sizes=Sizes,
    reads=("data",),
    keys=("way", "step"),
    curve=("step", "loss_ratio"),
)

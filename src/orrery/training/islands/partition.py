"""How many layers each stage gets: evenly, or so that stages with slow rings and full ends have less to do."""

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.training.islands.fleet import Fleet, Order
from orrery.training.islands.step import GroupedStep, grouped_step


def even_layers(num_layers: int, pp: int) -> tuple[int, ...]:
    """As equal as can be; the first stages get what does not come out even."""
    return tuple(num_layers // pp + (p < num_layers % pp) for p in range(pp))


def adapted_layers(job: TrainingJob, layout: TrainingLayout, fleet: Fleet, order: Order = "grouped") -> GroupedStep:
    """From the even partition, one layer after the other moves to where the step gains most, until none gains.

    [yang-2023] deals layers out in proportion to each group's measured speed; here the speeds come out of the step.
    """
    num_layers = sum(b.count for b in (*job.model.encoder, *job.model.blocks))
    best = grouped_step(job, layout, fleet, even_layers(num_layers, layout.pp), order)
    while True:
        tried = [grouped_step(job, layout, fleet, layers, order) for layers in _moved(best.layers)]
        better = min(tried, key=lambda s: s.time_s, default=best)
        if better.time_s >= best.time_s:
            return best
        best = better


def _moved(layers: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every partition that one layer's move away makes."""
    out: list[tuple[int, ...]] = []
    for a in range(len(layers)):
        for b in range(len(layers)):
            if a != b and layers[a] > 1:
                out.append(tuple(n - (i == a) + (i == b) for i, n in enumerate(layers)))
    return out

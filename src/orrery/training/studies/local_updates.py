"""Loss against the number of local steps, where what workers learnt is exchanged one round late. [sun-2024]"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.training.small.stale import OuterKnobs, stale_outer_descent


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated local steps of a round; workers; the outer update's step, momentum, penalty and cut."""

    local_steps: str = "1,4,12,48"
    workers: int = 4
    step_ratio: float = 1.0
    momentum_ratio: float = 0.5
    clip_ratio: float = 1.0
    penalty: bool = True


def run(request: Run) -> tuple[Row, ...]:
    """A row a number of local steps: the loss over that at the start, beside gradients exchanged in every step."""
    sizes: Sizes = request.sizes
    workers = whole("workers", sizes.workers, most=64)
    many = [
        whole("local_steps", int(n), most=request.steps) for n in numbers("local_steps", sizes.local_steps, least=1)
    ]
    knobs = OuterKnobs(
        step_ratio=sizes.step_ratio,
        momentum_ratio=sizes.momentum_ratio,
        is_penalised=sizes.penalty,
        clip_ratio=sizes.clip_ratio,
    )
    if request.steps * workers > 100_000:
        raise ScenarioError(f"steps: {request.steps} of {workers} workers; write 100,000 of all workers at most.")
    tick = counter(request.progress, len(many))
    return tuple(row for count in many for row in _rows(request, workers, count, knobs, tick))


def _rows(request: Run, workers: int, count: int, knobs: OuterKnobs, tick: Callable[[], None]) -> Iterator[Row]:
    found = stale_outer_descent(
        num_workers=workers, local_steps=count, rounds=request.steps // count, seed=request.seed, knobs=knobs
    )
    tick()
    for update, losses in (("co2", found.losses_ratio), ("synchronous", found.synchronous_losses_ratio)):
        yield {"update": update, "local_steps": count, "loss_ratio": float(losses[-1] / losses[0])}


EXPERIMENT = Experiment(
    name="local-updates",
    question="What does it cost in loss to exchange seldom, and a round late?",
    run=run,
    num_steps=192,
    claims=("co2",),
    sizes=Sizes,
    keys=("update", "local_steps"),
    curve=("local_steps", "loss_ratio"),
)

"""A pipeline stage is lost and made anew: steps until the loss is again what it was, by way. [checkfree-2025]"""

from dataclasses import dataclass

from orrery.base.experiment import Experiment, Row, Run, counter, whole
from orrery.training.recovery.measured import Way, setbacks, train
from orrery.training.recovery.network import Shape

WAYS: tuple[Way, ...] = ("weighted", "mean", "copy", "random")
NUM_MOMENTS = 2
MAX_RATIO = 0.5
"""Steps that a setback is followed for, as a share of the run: a longer one counts with so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Stages, widths of the model, and tokens of a batch."""

    stages: int = 6
    hidden: int = 16
    ffn: int = 32
    vocab: int = 16
    batch: int = 64


def run(request: Run) -> tuple[Row, ...]:
    """A row a way and stage: the jump of the loss, and the steps that it sets back."""
    sizes: Sizes = request.sizes
    shape = Shape(
        num_stages=whole("stages", sizes.stages, least=2, most=64),
        hidden_size=whole("hidden", sizes.hidden, most=512),
        ffn_size=whole("ffn", sizes.ffn, most=2048),
        vocab_size=whole("vocab", sizes.vocab, least=2, most=256),
        num_batch=whole("batch", sizes.batch, most=4096),
    )
    moments = [max(1, (i + 1) * request.steps // (NUM_MOMENTS + 1)) for i in range(NUM_MOMENTS)]
    done = train(shape, request.steps, moments, seed=request.seed)
    tick = counter(request.progress, len(WAYS))
    rows = list[Row]()
    for way in WAYS:
        found = setbacks(done, range(shape.num_stages), way, most_steps=max(2, int(MAX_RATIO * request.steps)))
        for stage in range(shape.num_stages):
            mine = [one for one in found if one.stage == stage]
            rows.append(
                {
                    "way": way,
                    "stage": stage,
                    "setback_steps": sum(one.num_steps for one in mine) / len(mine),
                    "loss_jump_ratio": sum(one.loss_jump_ratio for one in mine) / len(mine),
                }
            )
        tick()
    return tuple(rows)


EXPERIMENT = Experiment(
    name="stage-recovery",
    question="How many steps is a run set back by a lost stage that is made of its neighbours?",
    run=run,
    num_steps=200,
    claims=("checkfree",),
    sizes=Sizes,
    keys=("way", "stage"),
    curve=("stage", "setback_steps"),
)

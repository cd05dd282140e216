"""How much loss eight-bit floats cost against BF16, with the usual pair of formats and with fewer precautions."""

from orrery.base.experiment import Experiment, Progress, Row
from orrery.numerics.experiments.compare import WIDE, compare
from orrery.numerics.experiments.fitting import but_for
from orrery.numerics.learning import linear

NUM_SEEDS = 3


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """A row for every recipe; the gap is to BF16."""
    rules = {
        "bf16": linear("rounded-linear", inputs="bf16", weights="bf16", gradients="bf16"),
        "fp8 e4m3 forward, e5m2 backward": linear("fp8-linear"),
        "fp8 e4m3 both ways": linear("fp8-linear", backward="e4m3fn/tensor"),
        "fp8 without scales": linear("fp8-linear", forward="e4m3fn/none", backward="e5m2/none"),
        "mxfp8": linear("rounded-linear"),
    }
    found = compare(
        {name: but_for(rule, WIDE) for name, rule in rules.items()},
        seed=seed,
        num_seeds=NUM_SEEDS,
        steps=steps,
        progress=progress,
    )
    return tuple(
        {"recipe": name, "loss": runs.mean_loss, "gap": runs.mean_loss - found["bf16"].mean_loss}
        for name, runs in found.items()
    )


EXPERIMENT = Experiment(
    name="fp8-and-bf16",
    question="How much loss does training in FP8 cost against BF16?",
    run=run,
    num_steps=150,
    claims=("fujii-2024-fp8-bf16", "micikevicius-2022"),
)

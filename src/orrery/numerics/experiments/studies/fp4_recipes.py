"""Four-bit recipes and what each part is worth: NVFP4 with one part left out at a time, Quartet, plain MXFP4."""

from orrery.base.experiment import Experiment, Progress, Row
from orrery.numerics.experiments.compare import NETWORK, WIDE, compare
from orrery.numerics.experiments.fitting import all_alike, but_for
from orrery.numerics.learning import linear
from orrery.numerics.rounding import Rounding

NUM_SEEDS = 2
LAST_BLOCK = frozenset(name for name in NETWORK.shapes if name.startswith(f"{NETWORK.num_blocks - 1}."))


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """A row for every recipe; the gap is to exact products. The head is exact in all of them."""
    nvfp4 = linear("nvfp4-linear")
    parts = {
        "nvfp4": nvfp4,
        "nvfp4, gradients to nearest": linear("nvfp4-linear", gradient_rounding=Rounding.NEAREST_EVEN),
        "nvfp4, no rotation": linear("nvfp4-linear", hadamard_elements=0),
        "nvfp4, weights scaled along rows": linear("nvfp4-linear", weights="nvfp4"),
        "quartet": linear("quartet-linear"),
        "mxfp4, to nearest": linear("rounded-linear", inputs="mxfp4", weights="mxfp4", gradients="mxfp4"),
    }
    rules = {"exact": all_alike(linear("exact-linear"))} | {name: but_for(rule, WIDE) for name, rule in parts.items()}
    rules["nvfp4, last block exact"] = but_for(nvfp4, WIDE | LAST_BLOCK)
    found = compare(rules, seed=seed, num_seeds=NUM_SEEDS, steps=steps, progress=progress)
    return tuple(
        {"recipe": name, "loss": runs.mean_loss, "gap": runs.mean_loss - found["exact"].mean_loss}
        for name, runs in found.items()
    )


EXPERIMENT = Experiment(
    name="fp4-recipes",
    question="What is each part of a four-bit training recipe worth?",
    run=run,
    num_steps=150,
    claims=("nvidia-2025-nvfp4-pretraining", "castro-2025-quartet"),
)

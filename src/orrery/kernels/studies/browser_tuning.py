"""Products of a transformer in a browser: one tile for all clients, and tiles tuned on the spot. [nn-jit-web-2023]"""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, whole
from orrery.kernels.gemm.naive_tiles import LARGEST_TILE
from orrery.kernels.gemm.tuned_tiles import Tuner, tuned

TRIALS = 10
"""Timed runs of one candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A block's linear layers, the tile that a library ships with, and what tuning costs."""

    hidden: int = 768
    ffn: int = 3072
    tokens: int = 128
    shipped_tile: int = 8  # threads a side
    compile_s: float = 0.1  # of one candidate
    dispatch_s: float = 20e-6  # of one kernel
    budget_s: float = 30.0


def run(request: Run) -> tuple[Row, ...]:
    """A row for each product of the block, shipped and tuned, and one for all of them together."""
    if request.device is None:
        raise ScenarioError("device: experiment browser-tuning runs on one; write --device rtx-4070.")
    sizes: Sizes = request.sizes
    if min(sizes.compile_s, sizes.dispatch_s, sizes.budget_s) <= 0.0:
        raise ScenarioError("set: compile_s, dispatch_s and budget_s are above 0.")
    hidden, ffn, tokens = (whole(name, getattr(sizes, name), most=10**6) for name in ("hidden", "ffn", "tokens"))
    shapes = ((tokens, hidden, hidden), (tokens, ffn, hidden), (tokens, hidden, ffn))
    tuner = Tuner(
        tiles=tuple(range(LARGEST_TILE, 0, -1)),  # few threads take so long that a browser would not wait for them
        shipped_tile=whole("shipped_tile", sizes.shipped_tile, most=LARGEST_TILE),
        compile_s=sizes.compile_s,
        num_trials=TRIALS,
        dispatch_s=sizes.dispatch_s,
        budget_s=sizes.budget_s,
    )
    found = tuned(shapes, request.device, tuner)
    return (
        {
            "tiles": " ".join(map(str, found.tiles)),
            "shipped_s": found.shipped_s,
            "tuned_s": found.tuned_s,
            "speedup": found.shipped_s / found.tuned_s,
            "tuning_s": found.tuning_s,
            "candidates": found.num_tried,
        },
    )


EXPERIMENT = Experiment(
    name="browser-tuning",
    question="How much faster are a transformer's products with tiles that are tuned in the browser?",
    run=run,
    num_steps=1,
    claims=("nn-jit-web",),
    sizes=Sizes,
    reads=("device",),
)

"""A forest that learns time and power of products, against roofs, rules and lines, on samples and on unseen shapes.

The samples are the 16,128 settings that [liu-2024-gemm-ada] timed on a GeForce RTX 4070, drawn from the GEMM and energy
rules with the noise of its published readings, and predictions are judged by them before the noise; or a measured table
of the user's (``op,device,format,m,n,k,time_s,power_w``), judged by its measurements. The drawn ones hold 36 shapes
only: a forest that is asked for samples of shapes that it knows is asked for less than it seems.
"""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run
from orrery.catalog.devices import get_device
from orrery.predictors.products.compare import compared
from orrery.predictors.products.samples import drawn_samples, read_samples

DEVICE, FEWEST_SAMPLES = "rtx-4070", 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Format of the drawn products."""

    format: str = "fp32"


def run(request: Run) -> tuple[Row, ...]:
    """A row for every predictor and way to hold out; ``steps`` trees a forest."""
    seed, device = request.seed, request.device or get_device(DEVICE)
    if (table := request.data.get("table")) is None:
        samples = drawn_samples(device.name, request.sizes.format, seed)
    else:
        samples = read_samples(table, device.name if request.device else "")
        if samples.time_s.size < FEWEST_SAMPLES:
            raise ScenarioError(
                f"{table}: has {samples.time_s.size} products; a forest needs {FEWEST_SAMPLES} or more."
            )
    return compared(samples, trees=request.steps, seed=seed, progress=request.progress)


EXPERIMENT = Experiment(
    name="gemm-forest",
    question="How well does a forest predict time and power of products, and of shapes that it has not seen?",
    run=run,
    num_steps=100,
    claims=("liu-2024-gemm-ada",),
    sizes=Sizes,
    reads=("table", "device"),
    keys=("held_out", "predictor"),
)

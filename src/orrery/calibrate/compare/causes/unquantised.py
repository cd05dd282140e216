"""16-bit where a narrower format was said: the flag did not arrive, the checkpoint is another, or kernels are missing.

Serving: 1 = the arithmetic is 16 bits wide (weights stay narrow and are unpacked), 2 = weights too. Training: BF16.
"""

from collections.abc import Sequence
from dataclasses import replace

from orrery.calibrate.compare.cause import Cause
from orrery.calibrate.compare.change import deployment_of, device_of, on_deployments, with_fields
from orrery.calibrate.compare.run import Run, TrainingRun
from orrery.execution.formats import is_16bit, wide_format
from orrery.execution.layout import Deployment, Formats
from orrery.execution.train.recipe_registry import get_recipe


def ladder(runs: Sequence[Run]) -> Sequence[float]:
    """Arithmetic, then weights too."""
    return (1.0, 2.0)


def change(run: Run, severity: float) -> Run | None:
    """The run in 16 bits."""
    if isinstance(run, TrainingRun):
        wide = replace(run, job=with_fields(run.job, recipe=get_recipe("bf16")))
        return wide if run.job.recipe.is_narrow else None
    formats = deployment_of(run).formats
    if is_16bit(formats.weights) or (severity < 2.0 and is_16bit(formats.activations)):
        return None
    return on_deployments(run, lambda d: with_fields(d, formats=_wide(d, severity)))


def _wide(deployment: Deployment, severity: float) -> Formats:
    formats, wide = deployment.formats, wide_format(deployment.cluster.device)
    return Formats(weights=wide if severity >= 2.0 else formats.weights, activations=wide, kv=formats.kv)


def describe(run: Run, severity: float) -> str:
    """Wording of which tensors are 16 bits wide."""
    wide = wide_format(device_of(run))
    if isinstance(run, TrainingRun):
        return f"products in {wide}, not in {run.job.recipe.name}"
    formats = deployment_of(run).formats
    what = "weights and arithmetic" if severity >= 2.0 else "arithmetic"
    return f"{what} in {wide}, not in {formats.weights}"


CAUSE = Cause(
    name="unquantised",
    title="16-bit weights or arithmetic where a narrower format was said",
    ladder=ladder,
    change=change,
    describe=describe,
    shows="By about the ratio of the bytes where weights are read (few sequences), and of the peak rates in prompts.",
    hides="Runs that were said to be 16 bits wide cannot show it.",
    checks=(
        "the engine's log: quantization=…, and 'Using Marlin/Cutlass/…Kernel'; 'Loading model weights took N GiB'",
        "the checkpoint: config.json's quantization_config; --quantization, --dtype, --kv-cache-dtype",
    ),
    is_stepwise=True,
)

"""Fewer devices work than were said: a replica is down, the tensor-parallel degree is smaller, traffic misses some."""

from collections.abc import Sequence

from orrery.calibrate.compare.cause import Cause, only_serving
from orrery.calibrate.compare.change import deployment_of, on_deployments, with_fields
from orrery.calibrate.compare.run import Run
from orrery.execution.layout import Deployment, Layout


def ladder(runs: Sequence[Run]) -> Sequence[float]:
    """A half, a quarter, an eighth."""
    return (2.0, 4.0, 8.0)


def change(run: Run, severity: float) -> Run | None:
    """One in ``severity`` of the devices: replicas where there are any, else a smaller tensor-parallel degree."""
    one = only_serving(run)
    if one is None or len(one.service.pools) > 1 or _fewer(deployment_of(one).layout, round(severity)) is None:
        return None
    return on_deployments(one, lambda d: _on_fewer(d, round(severity)))


def _on_fewer(deployment: Deployment, ways: int) -> Deployment:
    layout = _fewer(deployment.layout, ways) or deployment.layout
    cluster = with_fields(deployment.cluster, num_devices=layout.num_devices)
    return with_fields(deployment, layout=layout, cluster=cluster)


def _fewer(layout: Layout, ways: int) -> Layout | None:
    if layout.ep > 1:
        return None
    for degree in ("dp", "tp"):
        if (size := getattr(layout, degree)) % ways == 0:
            return with_fields(layout, **{degree: size // ways})
    return None


def describe(run: Run, severity: float) -> str:
    """The devices that work beside those that were said."""
    layout = deployment_of(one).layout if (one := only_serving(run)) else Layout()
    fewer = _fewer(layout, round(severity))
    return f"1 in {severity:.0f} of the devices at work: {fewer or 'fewer'}, not {layout}"


CAUSE = Cause(
    name="fewer-devices",
    title="fewer devices at work than said",
    ladder=ladder,
    change=change,
    describe=describe,
    shows="Everything slows down by about the number of devices; small batches less where replicas are missing.",
    hides="A run on one device cannot show it.",
    checks=(
        "nvidia-smi dmon -s u under load: which devices are busy?",
        "--tensor-parallel-size, --data-parallel-size, CUDA_VISIBLE_DEVICES; the balancer's list of live backends",
    ),
    is_stepwise=True,
)

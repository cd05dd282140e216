"""The power that a device draws while it repeats a step: idle, plus what arithmetic and bytes cost."""

from orrery.execution.layout import Deployment
from orrery.execution.step import Step
from orrery.kernels import energy


def step_power_w(deployment: Deployment, done: Step, entry: int, time_s: float) -> float:
    """Mean power of one device over a step that takes ``time_s`` on the wall; between kernels it idles.

    With pipeline parallelism a device is busy for its own stage only, so the work of a pass is shared by the stages.
    """
    device, wall_s = deployment.cluster.device, max(time_s, 1e-12) * deployment.layout.pp
    by_format: dict[str, tuple[float, float]] = {}
    for p in done.parts:
        flops, moved = p.work(entry)
        if moved:
            before = by_format.get(p.format, (0.0, 0.0))
            by_format[p.format] = (before[0] + flops, before[1] + moved)
    dynamic_w = 0.0
    for format, (flops, moved) in by_format.items():
        busy_w = float(energy.power_w(device, format, flops / wall_s, moved / wall_s))
        dynamic_w += max(busy_w - device.idle_power_w, 0.0)
    return min(device.idle_power_w + dynamic_w, device.power_limit_w)

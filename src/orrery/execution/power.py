"""The power that a device draws while it repeats a step: idle, plus what arithmetic and bytes cost."""

import numpy as np

from orrery.execution.batch import Floats
from orrery.execution.layout import Deployment
from orrery.execution.step import Step
from orrery.kernels import energy


def step_power_w(deployment: Deployment, done: Step, time_s: Floats) -> Floats:
    """Mean power of one device over steps that take ``time_s`` on the wall; between kernels it idles.

    With pipeline parallelism a device is busy for its own stage only, so the work of a pass is shared by the stages.
    """
    device, pp = deployment.cluster.device, deployment.layout.pp
    wall_s = np.maximum(time_s, 1e-12)
    by_format: dict[str, tuple[Floats, Floats]] = {}
    for p in done.parts:
        flops, moved = by_format.get(p.format, (np.zeros_like(wall_s), np.zeros_like(wall_s)))
        by_format[p.format] = (flops + p.flops / pp, moved + p.bytes / pp)
    dynamic_w = np.zeros_like(wall_s)
    for format, (flops, moved) in by_format.items():
        busy = energy.power_w(device, format or "bf16", flops / wall_s, moved / wall_s)
        dynamic_w += np.maximum(busy - device.idle_power_w, 0.0)
    return np.minimum(device.idle_power_w + dynamic_w, device.power_limit_w)

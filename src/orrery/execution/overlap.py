"""Which ways there are to overlap the parts of a pass, and what a deployment tells their knobs.

The rules are the files in ``techniques`` at ``execution.overlap``; see docs/models/overlap.md.
"""

from dataclasses import fields

import numpy as np

from orrery.base.extension_points import ExtensionPoint, knob_array
from orrery.base.technique import Technique
from orrery.execution import techniques
from orrery.execution.batch import Batch
from orrery.execution.explain import bound_by
from orrery.execution.layout import Deployment
from orrery.execution.step import step

OVERLAPS = ExtensionPoint(name="execution.overlap", folder=techniques, noun="overlap")

__all__ = ["OVERLAPS", "device_knobs", "knob_array", "norm_frac"]


def device_knobs(technique: Technique, deployment: Deployment) -> dict[str, float]:
    """A deployment's values of those knobs that a way to overlap has: number of units, and of devices a layer."""
    names = {f.name for f in fields(technique.knobs)}
    description = {
        "num_units": float(deployment.cluster.device.num_compute_units),
        "num_devices": float(deployment.layout.tp),
    }
    return {name: value for name, value in description.items() if name in names}


def norm_frac(deployment: Deployment, tokens: int) -> float:
    """Norms with their residual additions, as a share of the memory-bound time of a prompt of ``tokens``."""
    one, none = np.array([1]), np.array([0])
    new = np.array([tokens])
    batch = Batch(
        prompt_sequences=one,
        prompt_tokens=new,
        prompt_context_tokens=new,
        decode_sequences=none,
        decode_context_tokens=none,
    )
    parts = [p for p in step(deployment, batch).parts if bound_by(p, 0) == "memory"]
    whole = sum(float(p.time_s[0]) for p in parts)
    norms = sum(float(p.time_s[0]) for p in parts if p.name == "norms")
    return norms / whole if whole > 0.0 else 0.0

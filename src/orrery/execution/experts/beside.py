"""Shared experts on a second stream, beside the routed ones.

Both read the same tokens and neither waits for the other, so engines run them at once in small steps. Together they
take as long as the longer one, but no less than all their bytes at full bandwidth, nor all their products at the peak::

    together = max(routed, shared, bytes of both / bandwidth, operations of both / peak)

What that saves is taken off the shared experts' time. Behind DeepEP engines hide other work; nothing is saved there.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orrery.execution.batch import Batch, Floats, Part
from orrery.execution.experts.dispatch import DEEPEP, dispatcher_of
from orrery.execution.layout import Deployment
from orrery.execution.shard import Shard, has_exchange


def beside(deployment: Deployment, cut: Shard, batch: Batch, parts: Sequence[Part]) -> list[Part]:
    """The parts of a step, shared experts as long as they show."""
    runs = np.asarray(batch.num_tokens <= deployment.engine.shared_beside_tokens)
    found = list(parts)
    for experts in cut.experts if runs.any() else ():
        if has_exchange(deployment) and dispatcher_of(deployment, experts) == DEEPEP:
            continue
        names = {x.name for x in cut.linears if x.is_shared and x.block == experts.block}
        shared = [p for p in found if p.group == experts.block and p.name in names]
        routed = [p for p in found if p.group == experts.block and p.op == "moe"]
        shared_s: Floats = np.sum([p.time_s for p in shared], axis=0)
        if not shared or not routed or not np.any(shared_s):
            continue
        routed_s: Floats = np.sum([p.time_s for p in routed], axis=0)
        shown: Floats = np.where(runs, _together_s(routed_s, shared_s, [*routed, *shared]) - routed_s, shared_s)
        share: Floats = shown / np.where(shared_s > 0, shared_s, 1.0)
        found = [replace(p, time_s=p.time_s * share) if p in shared else p for p in found]
    return found


def _together_s(routed_s: Floats, shared_s: Floats, parts: Sequence[Part]) -> Floats:
    """Seconds of both at once."""
    once = [(p.once, p.count) for p in parts if p.once is not None]
    moved_s = np.sum([t.memory_s * count for t, count in once], axis=0)
    worked_s = np.sum([t.compute_s * count for t, count in once], axis=0)
    roofs_s = np.minimum(np.maximum(moved_s, worked_s), routed_s + shared_s)
    return np.maximum(np.maximum(routed_s, shared_s), roofs_s)

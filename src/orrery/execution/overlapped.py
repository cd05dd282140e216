"""One pass under an overlap: what an overlap's rule asks for, from a step and its half, and the step that it makes.

A rule at ``execution.overlap`` wants the whole pass, what of it is collectives and memory-bound kernels, and
what two halves take beyond the whole: weights read twice, waves filled worse, collectives started twice. Experts that
ranks share stay in turn, as in the simulation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from orrery.execution.batch import Batch, Floats, Part
from orrery.execution.layout import Deployment
from orrery.execution.overlap import OVERLAPS, device_knobs, knob_array
from orrery.execution.shard import has_exchange
from orrery.execution.step import Step
from orrery.execution.surface._kernel import MEMORY, NETWORK, TIME
from orrery.execution.surface.channels import channels

SEQUENTIAL = "sequential"
SHARED_PARTS = ("experts", "dispatch", "combine")
NUM_BATCHES = (2, 3, 4, 6, 8)
"""Numbers of nano-batches that are tried where nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pass:
    """Passes of a deployment, one entry each, in the terms of an overlap's rule."""

    deployment: Deployment
    total_s: Floats
    network_s: Floats
    memory_s: Floats
    split_extra_s: Floats  # what the kernels of two halves take beyond those of the whole
    halves_network_extra_s: Floats

    @property
    def kernels_s(self) -> Floats:
        """Time (s) of the pass without its collectives."""
        return self.total_s - self.network_s

    @property
    def halves_s(self) -> Floats:
        """Two halves, one after the other."""
        return self.total_s + self.split_extra_s + self.halves_network_extra_s


def halved(batch: Batch) -> Batch:
    """Half of every entry: half the sequences; of a lone prompt half the tokens, which see 3/4 of it on average."""
    alone = batch.prompt_sequences == 1
    tokens = np.maximum(batch.prompt_tokens // 2, 1)
    seen = batch.prompt_context_tokens - batch.prompt_tokens // 4
    return Batch(
        prompt_sequences=np.where(alone, 1, (batch.prompt_sequences + 1) // 2),
        prompt_tokens=np.where(alone, tokens, batch.prompt_tokens),
        prompt_context_tokens=np.where(alone, seen, batch.prompt_context_tokens),
        decode_sequences=(batch.decode_sequences + 1) // 2,
        decode_context_tokens=batch.decode_context_tokens,
    )


def pass_of(deployment: Deployment, parts: Sequence[Part], half_parts: Sequence[Part], size: int) -> Pass:
    """The passes whose parts, and those of their halves, are given; ``size`` of them."""
    whole, half = (channels(deployment, x, size) for x in (parts, half_parts))
    more_network_s = np.maximum(0.0, 2.0 * half[:, NETWORK] - whole[:, NETWORK])
    return Pass(
        deployment=deployment,
        total_s=whole[:, TIME],
        network_s=whole[:, NETWORK],
        memory_s=whole[:, MEMORY],
        split_extra_s=np.maximum(0.0, 2.0 * half[:, TIME] - whole[:, TIME] - more_network_s),
        halves_network_extra_s=more_network_s,
    )


def overlapped_s(done: Pass, name: str, **knobs: float) -> Floats:
    """The passes under the overlap ``name``; what a device tells its knobs is told.

    Where it runs nano-batches and nobody says how many, each pass takes the number with the least time.
    """
    technique, d = OVERLAPS.get(name), done.deployment
    given = {**device_knobs(technique, d), **knobs}
    tried = [given]
    if "num_batches" in {f.name for f in fields(technique.knobs)} and "num_batches" not in given:
        tried = [{**given, "num_batches": float(n)} for n in NUM_BATCHES]
    columns = (done.total_s, done.network_s, done.memory_s, done.split_extra_s, done.halves_network_extra_s)
    rows = [tuple(map(float, row)) for row in zip(*columns, strict=True)]
    layers = float(d.model.num_layers)
    values = [knob_array(technique, **one) for one in tried]
    return np.array([min(technique.rule(*row, layers, each) for each in values) for row in rows])


def overlapped(deployment: Deployment, done: Step, batch: Batch, cost: Callable[[Deployment, Batch], Step]) -> Step:
    """The step with its parts as long as they show under the deployment's overlap; itself where it has none."""
    if deployment.overlap in ("", SEQUENTIAL):
        return done
    whole, half = (_own(deployment, x.parts) for x in (done, cost(deployment, halved(batch))))
    passed = pass_of(deployment, whole, half, batch.num_tokens.size)
    shown_s = overlapped_s(passed, deployment.overlap, **dict(deployment.overlap_knobs))
    share = shown_s / np.where(passed.total_s > 0.0, passed.total_s, 1.0)
    parts = tuple(replace(p, time_s=p.time_s * share) if any(p is x for x in whole) else p for p in done.parts)
    ratio = np.sum([p.time_s for p in parts], axis=0) / np.where(done.time_s > 0.0, done.time_s, 1.0)
    return replace(done, parts=parts, time_s=done.time_s * ratio, stage_s=done.stage_s * ratio)


def _own(deployment: Deployment, parts: tuple[Part, ...]) -> list[Part]:
    """Parts that a rank does by itself."""
    is_shared = has_exchange(deployment)
    return [p for p in parts if not (is_shared and p.name in SHARED_PARTS)]

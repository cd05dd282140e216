"""One pass under an overlap, without serving anybody: what an overlap's rule asks for, from a step and its half.

A rule at the seam ``execution.overlap`` wants the whole pass, what of it is collectives and memory-bound kernels, and
what two halves take beyond the whole: weights read twice, waves filled worse, collectives started twice.
"""

from dataclasses import dataclass, replace

import numpy as np

from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.layout import Deployment
from orrery.execution.overlap import device_knobs, get_overlap, knob_array
from orrery.execution.step import step
from orrery.execution.surface._kernel import MEMORY, NETWORK, TIME
from orrery.execution.surface.channels import channels


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


def prompts(tokens: Ints, sequences: int = 1) -> Batch:
    """``sequences`` whole prompts of equal length in a step, one entry for each length."""
    none = np.zeros_like(tokens)
    return Batch(
        prompt_sequences=none + sequences, prompt_tokens=tokens, prompt_context_tokens=tokens, decode_sequences=none,
        decode_context_tokens=none,
    )  # fmt: skip


def decodes(sequences: Ints, context_tokens: Ints) -> Batch:
    """Steps of answers only."""
    none = np.zeros_like(sequences)
    return Batch(
        prompt_sequences=none, prompt_tokens=none, prompt_context_tokens=none, decode_sequences=sequences,
        decode_context_tokens=context_tokens,
    )  # fmt: skip


def halved(batch: Batch) -> Batch:
    """Half of every entry: half the sequences; of a lone prompt half the tokens, which see 3/4 of it on average."""
    alone = batch.prompt_sequences == 1
    tokens = np.maximum(batch.prompt_tokens // 2, 1)
    seen = batch.prompt_context_tokens - batch.prompt_tokens // 4
    return Batch(
        prompt_sequences=np.where(alone, 1, (batch.prompt_sequences + 1) // 2),
        prompt_tokens=np.where(alone, tokens, batch.prompt_tokens),
        prompt_context_tokens=np.where(alone, seen, batch.prompt_context_tokens),
        decode_sequences=(batch.decode_sequences + 1) // 2, decode_context_tokens=batch.decode_context_tokens,
    )  # fmt: skip


def pass_of(deployment: Deployment, batch: Batch) -> Pass:
    """The passes that ``batch`` asks for."""
    size = batch.num_tokens.size
    whole = channels(deployment, step(deployment, batch).parts, size)
    half = channels(deployment, step(deployment, halved(batch)).parts, size)
    more_network_s = np.maximum(0.0, 2.0 * half[:, NETWORK] - whole[:, NETWORK])
    more_s = np.maximum(0.0, 2.0 * half[:, TIME] - whole[:, TIME] - more_network_s)
    return Pass(
        deployment=deployment, total_s=whole[:, TIME], network_s=whole[:, NETWORK], memory_s=whole[:, MEMORY],
        split_extra_s=more_s, halves_network_extra_s=more_network_s,
    )  # fmt: skip


def with_network(done: Pass, network_s: Floats) -> Pass:
    """The same kernels over another link, whose collectives take ``network_s``."""
    return replace(done, total_s=done.kernels_s + network_s, network_s=network_s)


def overlapped_s(done: Pass, name: str, **knobs: float) -> Floats:
    """The passes under the overlap ``name``; what a device tells its knobs is told."""
    technique, d = get_overlap(name), done.deployment
    values = knob_array(technique, **device_knobs(technique, d), **knobs)
    columns = (done.total_s, done.network_s, done.memory_s, done.split_extra_s, done.halves_network_extra_s)
    layers = float(d.model.num_layers)
    return np.array([technique.rule(*map(float, row), layers, values) for row in zip(*columns, strict=True)])

"""Cost of writing responses: prompts in one pass, then one step for each token, every replica on its own."""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from orrery.execution.layout import Deployment, Formats, Layout
from orrery.execution.memory import activation_bytes, communication_bytes
from orrery.execution.shard import cache_of, shard
from orrery.planner.rlhf.dataflow import RlhfJob
from orrery.planner.rlhf.slots import slowest
from orrery.serving.clock import steps_of, tick

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = leggauss(3)
"""Three Gauss points integrate a step time that is up to quintic in the context exactly."""

MOMENTS = 48
"""Evenly spaced moments at which responses of unequal lengths are counted."""

PROMPT_TOKENS = 8192
"""Prompt tokens of one pass. Assumed: what engines take by default; more changes the time of a token little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """All waves of one replica; bytes of its fullest device."""

    time_s: float
    step_s: float  # mean time of a step that writes a token of every sequence
    num_steps: int  # such steps, after the passes over prompts
    weights_bytes: float
    work_bytes: float  # cache at its fullest, activations, the engine's context


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """Sequences of a replica at moments whose shares of the time add up to one."""

    num_steps: int
    sequences: Floats
    context_tokens: Floats  # of the mean sequence
    share_frac: Floats
    cached_sequences: float  # when the cache is fullest
    cached_tokens: float  # of the mean one of them


class Generation:
    """Generation by one model, for every cut and batch of a replica; each is costed once."""

    def __init__(self, job: RlhfJob, role: str) -> None:
        self.job, self.role = job, role
        self._known: dict[tuple[int, int, int, int], Written] = {}
        self._moments: dict[tuple[int, int], Moments] = {}

    def run(self, tp: int, pp: int, batch: int, waves: int = 1) -> Written:
        """``batch`` sequences of one replica at once, ``waves`` times as many in all; with pp > 1 they go round the
        stages in pp parts."""
        key = tp, pp, batch, waves
        if key not in self._known:
            self._known[key] = self._write(tp, pp, batch, waves)
        return self._known[key]

    def _write(self, tp: int, pp: int, batch: int, waves: int) -> Written:
        job, d, at = self.job, self._deployed(tp, pp, batch), self._moments_of(batch, waves)
        prompts = max(1, min(batch // pp, PROMPT_TOKENS // max(job.prompt_tokens, 1)))
        zero = np.zeros(at.sequences.size)
        ticks = tick(
            d,
            steps_of(
                np.append(zero, prompts),
                np.append(zero, job.prompt_tokens),
                np.append(zero, job.prompt_tokens),
                np.append(np.maximum(at.sequences / pp, 1.0), 0.0),
                np.append(at.context_tokens, 0.0),
            ),
        )
        step_s = float(at.share_frac @ np.maximum(ticks.time_s[:-1], pp * ticks.stage_s[:-1]))
        prefill_s = float(ticks.time_s[-1]) + (batch / prompts - 1.0) * float(ticks.stage_s[-1])
        cached = at.cached_sequences * cache_of(d).sequence_bytes(round(at.cached_tokens))
        return Written(
            time_s=waves * prefill_s + at.num_steps * step_s,
            step_s=step_s,
            num_steps=at.num_steps,
            weights_bytes=shard(d).weight_bytes,
            work_bytes=cached + activation_bytes(d) + communication_bytes(d) + d.engine.context_bytes,
        )

    def _moments_of(self, batch: int, waves: int) -> Moments:
        key = batch, waves
        if key not in self._moments:
            self._moments[key] = _unequal(self.job, *key) if self.job.responses else _equal(self.job, *key)
        return self._moments[key]

    def _deployed(self, tp: int, pp: int, batch: int) -> Deployment:
        job = self.job
        return Deployment(
            model=job.models[self.role],
            cluster=job.cluster,
            layout=Layout(tp=tp, pp=pp),
            formats=Formats(weights="bf16", activations="bf16", kv="bf16"),
            engine=job.engine,
            max_num_seqs=batch,
            max_num_batched_tokens=PROMPT_TOKENS,
        )


def _equal(job: RlhfJob, batch: int, waves: int) -> Moments:
    """Responses of one length: every wave is whole from its first step to its last."""
    steps = job.output_tokens - 1
    return Moments(
        num_steps=waves * steps,
        sequences=np.full(_NODES.size, float(batch)),
        context_tokens=job.prompt_tokens + 1 + (_NODES + 1) / 2 * max(steps, 1),
        share_frac=_WEIGHTS / 2,
        cached_sequences=float(batch),
        cached_tokens=job.seq_len,
    )


def _unequal(job: RlhfJob, batch: int, waves: int) -> Moments:
    """Responses as they were drawn, on the replica that takes most steps; a place that is left goes to the next one."""
    responses = np.array(job.responses, dtype=np.int64)
    found = slowest(responses, -(-responses.size // (batch * waves)), batch)
    at = (np.arange(MOMENTS) + 0.5) / MOMENTS * found.num_steps
    sequences, written = found.active(at)
    most, held = found.fullest
    return Moments(
        num_steps=found.num_steps,
        sequences=sequences,
        context_tokens=job.prompt_tokens + 1 + written / np.maximum(sequences, 1.0),
        share_frac=np.full(MOMENTS, 1.0 / MOMENTS),
        cached_sequences=most,
        cached_tokens=job.prompt_tokens + 1 + held / max(most, 1.0),
    )

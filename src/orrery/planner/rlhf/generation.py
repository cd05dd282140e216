"""Cost of generation: prompts in one pass, then one step for each token, every replica on its own."""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss

from orrery.execution.layout import Deployment, Formats, Layout
from orrery.execution.memory import activation_bytes, communication_bytes
from orrery.execution.shard import cache_of, shard
from orrery.planner.rlhf.dataflow import RlhfJob
from orrery.serving.clock import steps_of, tick

_NODES, _WEIGHTS = leggauss(3)
"""Three Gauss points integrate a step time that is up to quintic in the context exactly."""

PROMPT_TOKENS = 8192
"""Prompt tokens of one pass. Assumed: what engines take by default; more changes the time of a token little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One wave of one replica; bytes of its fullest device."""

    time_s: float
    step_s: float  # mean time of a token after the first
    weights_bytes: float
    work_bytes: float  # cache at full length, activations, the engine's context


class Generation:
    """Generation by one model, for every cut and batch of a replica; each is costed once."""

    def __init__(self, job: RlhfJob, role: str) -> None:
        self.job, self.role = job, role
        self._known: dict[tuple[int, int, int], Written] = {}

    def run(self, tp: int, pp: int, batch: int) -> Written:
        """``batch`` prompts of one replica, all at once; with pp > 1 they go round the stages in pp parts."""
        key = tp, pp, batch
        if key not in self._known:
            self._known[key] = self._write(tp, pp, batch)
        return self._known[key]

    def _write(self, tp: int, pp: int, batch: int) -> Written:
        job, d = self.job, self._deployed(tp, pp, batch)
        part = max(1, batch // pp)
        prompts = max(1, min(part, PROMPT_TOKENS // max(job.prompt_tokens, 1)))
        steps = job.output_tokens - 1
        context = job.prompt_tokens + 1 + (_NODES + 1) / 2 * max(steps, 1)
        zero = np.zeros(3)
        ticks = tick(
            d,
            steps_of(
                np.append(zero, prompts),
                np.append(zero, job.prompt_tokens),
                np.append(zero, job.prompt_tokens),
                np.append(zero + part, 0.0),
                np.append(context, 0.0),
            ),
        )
        step_s = float(_WEIGHTS @ np.maximum(ticks.time_s[:3], pp * ticks.stage_s[:3])) / 2
        prefill_s = float(ticks.time_s[3]) + (batch / prompts - 1.0) * float(ticks.stage_s[3])
        cached = batch * cache_of(d).sequence_bytes(job.seq_len)
        return Written(
            time_s=prefill_s + steps * step_s,
            step_s=step_s,
            weights_bytes=shard(d).weight_bytes,
            work_bytes=cached + activation_bytes(d) + communication_bytes(d) + d.engine.context_bytes,
        )

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

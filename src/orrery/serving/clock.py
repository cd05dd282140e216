"""From a step's time on the device to its time on the wall: the host prepares it, and may hide behind it (see
``execution.host``)."""

from dataclasses import dataclass, replace

import numpy as np

from orrery.execution.batch import Batch, Floats, Part
from orrery.execution.compression import compressing_s
from orrery.execution.draft_head import with_drafting
from orrery.execution.host import launched_s, wall_s
from orrery.execution.kept_cache import NOTHING, seen_tokens
from orrery.execution.layout import Deployment
from orrery.execution.overlapped import overlapped
from orrery.execution.step import Step, step


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ticks:
    """Steps with their wall times; arrays with one entry a step."""

    done: Step
    time_s: Floats  # from one token of a sequence to its next: a pass through every stage
    stage_s: Floats  # between two batches that enter the pipeline
    host_s: Floats


def tick(deployment: Deployment, batch: Batch) -> Ticks:
    """Cost every step of ``batch``, host included."""
    engine, rows = deployment.engine, batch.num_rows
    cut = _cut(deployment, batch)
    cost = with_drafting if deployment.draft_head else step
    done = cost(deployment, cut)
    if deployment.overlap:
        done = overlapped(deployment, done, cut, cost)
    done = _compressing(deployment, batch, done)
    launch_s = launched_s(deployment, batch)
    return Ticks(
        done=done,
        time_s=wall_s(engine, done.time_s, rows, launch_s),
        stage_s=wall_s(engine, done.stage_s, rows, launch_s / deployment.layout.pp),
        host_s=engine.step_s + engine.per_sequence_s * rows + launch_s,
    )


def _cut(deployment: Deployment, batch: Batch) -> Batch:
    """The batch with the contexts that a compressed cache leaves its decodes."""
    cut = deployment.compression
    if cut == NOTHING:
        return batch
    seen = np.rint(seen_tokens(cut, batch.decode_context_tokens.astype(np.float64))).astype(np.int64)
    return replace(batch, decode_context_tokens=np.where(batch.decode_sequences > 0, seen, batch.decode_context_tokens))


def _compressing(deployment: Deployment, batch: Batch, done: Step) -> Step:
    """The step with the choice of what stays of the prompts that it computes."""
    cut = deployment.compression
    prompt = round(cut.prompt_tokens)
    if not prompt:
        return done
    each_s = compressing_s(deployment, cut, prompt) / prompt
    time_s = each_s * (batch.prompt_sequences * batch.prompt_tokens)
    part = Part(name="choose what stays", group="cache", time_s=time_s, op="compression")
    return Step(parts=(*done.parts, part), time_s=done.time_s + time_s, stage_s=done.stage_s + time_s)


def steps_of(
    prompts: Floats | float,
    prompt_tokens: Floats | float,
    prompt_context: Floats | float,
    decodes: Floats | float,
    decode_context: Floats | float,
) -> Batch:
    """A batch from real-valued sizes, rounded to whole sequences and tokens (at least one where there is any)."""
    sizes = np.broadcast_arrays(prompts, prompt_tokens, prompt_context, decodes, decode_context)
    whole = [np.where(x > 0, np.maximum(1, np.rint(x)), 0).astype(np.int64) for x in sizes]
    return Batch(
        prompt_sequences=whole[0],
        prompt_tokens=whole[1],
        prompt_context_tokens=np.maximum(whole[2], whole[1]),
        decode_sequences=whole[3],
        decode_context_tokens=whole[4],
    )

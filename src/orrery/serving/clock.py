"""From a step's time on the device to its time on the wall: the host prepares it, and may hide behind it (see
``execution.host``)."""

from dataclasses import dataclass

import numpy as np

from orrery.execution.batch import Batch, Floats
from orrery.execution.draft_head import with_drafting
from orrery.execution.host import launched_s, wall_s
from orrery.execution.layout import Deployment
from orrery.execution.step import Step


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ticks:
    """Steps with their wall times; arrays with one entry a step."""

    done: Step
    time_s: Floats  # from one token of a sequence to its next: a pass through every stage
    stage_s: Floats  # between two batches that enter the pipeline
    host_s: Floats


def tick(deployment: Deployment, batch: Batch) -> Ticks:
    """Cost every step of ``batch``, host included."""
    engine, done, rows = deployment.engine, with_drafting(deployment, batch), batch.num_rows
    launch_s = launched_s(deployment, batch)
    return Ticks(
        done=done, time_s=wall_s(engine, done.time_s, rows, launch_s),
        stage_s=wall_s(engine, done.stage_s, rows, launch_s / deployment.layout.pp),
        host_s=engine.step_s + engine.per_sequence_s * rows + launch_s,
    )  # fmt: skip


def steps_of(
    prompts: Floats | float, prompt_tokens: Floats | float, prompt_context: Floats | float,
    decodes: Floats | float, decode_context: Floats | float,
) -> Batch:  # fmt: skip
    """A batch from real-valued sizes, rounded to whole sequences and tokens (at least one where there is any)."""
    sizes = np.broadcast_arrays(prompts, prompt_tokens, prompt_context, decodes, decode_context)
    whole = [np.where(x > 0, np.maximum(1, np.rint(x)), 0).astype(np.int64) for x in sizes]
    return Batch(
        prompt_sequences=whole[0], prompt_tokens=whole[1], prompt_context_tokens=np.maximum(whole[2], whole[1]),
        decode_sequences=whole[3], decode_context_tokens=whole[4],
    )  # fmt: skip

"""Traffic as a deployment with a drafting head or a compressed cache sees it: fewer steps, or less context in each.

A step yields ``tokens_per_step`` tokens of a sequence, so an answer of n tokens takes 1 + (n - 1) / tokens_per_step
steps. What the closed form says of steps is then said of tokens: the time per token is a step's over what it yields.
"""

from dataclasses import dataclass, replace

from orrery.execution.compression import compressed
from orrery.execution.kept_cache import NOTHING, kept_tokens
from orrery.execution.layout import Deployment
from orrery.execution.memory import Memory
from orrery.serving.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drafted:
    """The same traffic in steps: how many an answer takes, and what keeps its mean context and its room right."""

    deployment: Deployment
    memory: Memory
    output_steps: float
    tokens_per_step: float = 1.0


def drafted(deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float) -> Drafted:
    """Answers counted in steps; without a head all is as it was."""
    deployment, memory = room_for_kept(deployment, memory, input_tokens, output_tokens)
    head = deployment.draft_head
    if head is None or output_tokens <= 1:
        return Drafted(deployment=deployment, memory=memory, output_steps=output_tokens)
    each = head.tokens_per_step
    steps = 1.0 + (output_tokens - 1.0) / each
    longer = replace(deployment, draft_head=replace(head, ahead_tokens=(output_tokens - steps) / 2))
    real, seen = (memory.taken_bytes(input_tokens + n / 2) for n in (output_tokens, steps))
    room = replace(memory, kv_capacity_bytes=memory.kv_capacity_bytes * (seen / real if real else 1.0))
    return Drafted(deployment=longer, memory=room, output_steps=steps, tokens_per_step=each)


def room_for_kept(
    deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float
) -> tuple[Deployment, Memory]:
    """The deployment with the prompt that its cache is cut from, and room for as many sequences as then fit."""
    if deployment.compression == NOTHING:
        return deployment, memory
    cut = replace(deployment.compression, prompt_tokens=input_tokens)
    held = kept_tokens(cut, round(input_tokens)) + output_tokens / 2
    whole = memory.cache.sequence_bytes(input_tokens + output_tokens / 2)
    less = compressed(memory.cache, cut).sequence_bytes(held)
    room = replace(memory, kv_capacity_bytes=memory.kv_capacity_bytes * (whole / less if less else 1.0))
    return replace(deployment, compression=cut), room


def in_steps(found: Drafted, workload: Workload) -> Workload:
    """The workload with its answers counted in steps."""
    if found.tokens_per_step == 1.0:
        return workload
    return replace(
        workload,
        output_tokens=found.output_steps,
        output_tokens_std=workload.output_tokens_std / found.tokens_per_step,
    )

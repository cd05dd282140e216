"""Operations of a step: time, operations, bytes, and the bound of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orrery.execution.explain import bound_by
from orrery.serving.estimate import Estimate

StepKind = Literal["decode", "prompts"]

STEPS: dict[StepKind, str] = {"decode": "decode step", "prompts": "prefill step"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpWork:
    """One operation in all of a step's layers."""

    name: str
    group: str
    format: str
    time_s: float
    flops: float
    bytes: float
    bound_by: str
    is_matrix: bool  # in the matrix units


def ops_of(e: Estimate, step: StepKind) -> tuple[OpWork, ...]:
    """The operations of a step that take time, in the order that they were costed."""
    entry = e.steps.decode_entry if step == "decode" else e.steps.prompt_entry
    found: list[OpWork] = []
    for p in e.steps.ticks.done.parts:
        time_s, (flops, moved) = float(p.time_s[entry]), p.work(entry)
        if time_s > 0:
            found.append(
                OpWork(
                    name=p.name,
                    group=p.group,
                    format=p.format,
                    time_s=time_s,
                    flops=flops,
                    bytes=moved,
                    bound_by=bound_by(p, entry),
                    is_matrix=p.group != "elementwise",
                )
            )
    return tuple(found)


def by_name(ops: Sequence[OpWork]) -> dict[str, float]:
    """Seconds by name, over all blocks."""
    found: dict[str, float] = {}
    for op in ops:
        found[op.name] = found.get(op.name, 0.0) + op.time_s
    return found


def has_prompts(e: Estimate) -> bool:
    """Whether some steps carry prompts."""
    return any(float(p.time_s[e.steps.prompt_entry]) > 0 for p in e.steps.ticks.done.parts)

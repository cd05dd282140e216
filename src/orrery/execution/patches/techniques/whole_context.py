"""Displaced patches: every device keeps the keys and values of all patches, those of the others a step old."""

from dataclasses import dataclass
from math import ceil

from orrery.base.technique import Technique
from orrery.execution.patches.shared import Exchanged, Shared


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Tensors that one gathering call holds; as published."""

    num_tensors: int = 60


def rule(shared: Shared, knobs: Knobs) -> Exchanged:
    """Caches and border rows go to everybody. [li-2024-distrifusion]"""
    count, each = shared.num_devices, shared.cache_bytes + shared.border_bytes
    calls = ceil((shared.num_attentions + shared.num_convolutions) / knobs.num_tensors)
    return Exchanged(
        read_ratio=float(count),
        kept_ratio=float(count),
        exchange_s=shared.gathering_s(each, calls),
        num_calls=calls,
        received_bytes=(count - 1) * each,
    )


TECHNIQUE = Technique(
    name="patch-whole-context",
    word="whole",
    extension_point="execution.patches",
    rule=rule,
    knobs=Knobs,
    gains="A picture is denoised by many devices, and what they exchange hides behind the next step.",
    costs="Every device receives and keeps all patches' keys and values; the others' are a step old.",
    claims=("li-2024-distrifusion",),
    command="orrery estimate --model flux.1-dev --patch-parallel N --patch-context whole",
)

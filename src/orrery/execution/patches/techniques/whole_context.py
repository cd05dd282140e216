"""Displaced patches: every device keeps the keys and values of all patches, those of the others a step old."""

from dataclasses import dataclass
from math import ceil

from orrery.base.technique import Technique
from orrery.execution.patches.picture import Denoised, Picture, denoised, gathering_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Tensors that one gathering call holds; as published."""

    num_tensors: int = 60


def rule(picture: Picture, knobs: Knobs) -> Denoised:
    """Caches and border rows go to everybody. [li-2024-distrifusion]"""
    count, each = picture.num_devices, picture.cache_bytes + picture.border_bytes
    calls = ceil((len(picture.transformers) + len(picture.convolutions)) / knobs.num_tensors)
    return denoised(
        picture, read_patches=count, exchange_s=gathering_s(picture, each, calls), received_bytes=(count - 1) * each
    )


TECHNIQUE = Technique(
    name="patch-whole-context",
    extension_point="execution.patches",
    rule=rule,
    knobs=Knobs,
    gains="A picture is denoised by many devices, and what they exchange hides behind the next step.",
    costs="Every device receives and keeps all patches' keys and values; the others' are a step old.",
    claims=("li-2024-distrifusion",),
)

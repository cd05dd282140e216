"""Partly conditioned patches: a device sends its keys and values to the two patches beside it, which read a part."""

from dataclasses import dataclass
from math import ceil

from orrery.base.technique import Technique
from orrery.execution.patches.picture import Denoised, Picture, denoised, gathering_s, sending_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """How much of each neighbour attention reads, and tensors that one gathering call of border rows holds."""

    read_frac: float = 0.3
    num_tensors: int = 20


def rule(picture: Picture, knobs: Knobs) -> Denoised:
    """Whole patches go to neighbours, border rows to everybody; the patches at the edge have one neighbour. [pcpp]"""
    count = picture.num_devices
    neighbours = 2.0 * (count - 1) / count
    borders_s = gathering_s(picture, picture.border_bytes, ceil(len(picture.convolutions) / knobs.num_tensors))
    caches_s = sending_s(picture, picture.cache_bytes, max(1, len(picture.transformers)))
    return denoised(
        picture,
        read_patches=1.0 + min(neighbours, 2.0) * knobs.read_frac,
        exchange_s=borders_s + caches_s,
        received_bytes=neighbours * picture.cache_bytes + (count - 1) * picture.border_bytes,
    )


TECHNIQUE = Technique(
    name="patch-neighbour-context",
    extension_point="execution.patches",
    rule=rule,
    knobs=Knobs,
    gains="Bytes a device no longer grow with the number of patches, and attention reads less than two of them.",
    costs="A patch sees nothing of those that are not beside it, and pictures may suffer.",
    claims=("pcpp",),
)

"""Partly conditioned patches: a device sends its keys and values to the two patches beside it, which read a part."""

from dataclasses import dataclass
from math import ceil

from orrery.base.technique import Technique
from orrery.execution.patches.shared import Exchanged, Shared


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """How much of each neighbour attention reads, and tensors that one gathering call of border rows holds."""

    read_frac: float = 0.3
    num_tensors: int = 20


def rule(shared: Shared, knobs: Knobs) -> Exchanged:
    """Whole patches go to neighbours, border rows to everybody; the patches at the edge have one neighbour. [pcpp]"""
    count = shared.num_devices
    neighbours = 2.0 * (count - 1) / count
    most = min(2.0, count - 1.0)  # of the patch with the most to do
    gathered, sent = ceil(shared.num_convolutions / knobs.num_tensors), max(1, shared.num_attentions)
    return Exchanged(
        read_ratio=1.0 + most * knobs.read_frac,
        kept_ratio=1.0 + most,
        exchange_s=shared.gathering_s(shared.border_bytes, gathered) + shared.sending_s(shared.cache_bytes, sent),
        num_calls=gathered + sent,
        received_bytes=neighbours * shared.cache_bytes + (count - 1) * shared.border_bytes,
    )


TECHNIQUE = Technique(
    name="patch-neighbour-context",
    word="neighbour",
    extension_point="execution.patches",
    rule=rule,
    knobs=Knobs,
    gains="Bytes a device no longer grow with the number of patches, and attention reads less than two of them.",
    costs="A patch sees nothing of those that are not beside it, and pictures may suffer.",
    claims=("pcpp",),
    command="orrery estimate --model flux.1-dev --patch-parallel N --patch-context neighbour",
)

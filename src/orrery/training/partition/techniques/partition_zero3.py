"""ZeRO-3: weights, gradients and optimizer states all lie over all devices, whatever joins them."""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.training.levels import Topology
from orrery.training.state_plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroThreeKnobs:
    """Knobs of ZeRO-3: none."""


def rule(topology: Topology, knobs: ZeroThreeKnobs) -> Plan:
    """Three passes of the weights' bytes over the slowest link every micro-batch. [rajbhandari-2020]"""
    last = topology.names[-1]
    return Plan(name="zero3-partition", weights=last, gradients=last, optimizer=last)


TECHNIQUE = Technique(
    name="zero3-partition",
    extension_point="training.partition",
    rule=rule,
    knobs=ZeroThreeKnobs,
    gains="The least memory: 16 bytes a parameter over all devices.",
    costs="Every gather and every reduction crosses the slowest link.",
    claims=("rajbhandari-2020",),
)

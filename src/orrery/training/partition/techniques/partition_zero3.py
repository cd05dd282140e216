"""ZeRO-3: weights, gradients and optimizer states all lie over all devices, whatever joins them."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.training.levels import Topology
from orrery.training.state_plan import Plan


def rule(topology: Topology, knobs: NoKnobs) -> Plan:
    """Three passes of the weights' bytes over the slowest link every micro-batch. [rajbhandari-2020]"""
    last = topology.names[-1]
    return Plan(name="zero3-partition", weights=last, gradients=last, optimizer=last)


TECHNIQUE = Technique(
    name="zero3-partition",
    word="zero3",
    extension_point="training.partition",
    rule=rule,
    gains="The least memory: 16 bytes a parameter over all devices.",
    costs="Every gather and every reduction crosses the slowest link.",
    claims=("rajbhandari-2020",),
)

"""Serial: every collective of tensor parallelism is waited for."""

from orrery.base.technique import Technique
from orrery.execution.train.overlap import Floats, Pair


def rule(pair: Pair, knobs: Floats) -> Floats:
    """Products, weight gradients and collectives one after the other. [megatron-lm-2019]"""
    return pair.serial_s


TECHNIQUE = Technique(
    name="serial",
    extension_point="execution.tensor_overlap",
    rule=rule,
    gains="Products run whole, and nothing slows them.",
    costs="All of the collectives' time.",
    claims=("megatron-lm-2019",),
)

"""Serial experts: tokens are sent out, the experts compute, and the results come back."""

from orrery.base.technique import Technique
from orrery.execution.train.overlap import Floats, Pair


def rule(pair: Pair, knobs: Floats) -> Floats:
    """Exchanges, experts and weight gradients one after the other. [gshard-2020]"""
    return pair.serial_s


TECHNIQUE = Technique(
    name="expert-serial",
    extension_point="execution.expert_overlap",
    rule=rule,
    gains="Experts see all of their tokens at once.",
    costs="All of the exchanges' time.",
    claims=("gshard-2020",),
)

"""Sequential: kernels and collectives one after the other, as most engines run them."""

from orrery.base.technique import Technique
from orrery.execution.batch import Floats


def rule(
    total_s: float,
    network_s: float,
    memory_s: float,
    split_extra_s: float,
    halves_network_extra_s: float,
    num_layers: float,
    knobs: Floats,
) -> float:
    """The sum of everything."""
    return total_s


TECHNIQUE = Technique(
    name="sequential",
    extension_point="execution.overlap",
    rule=rule,
    gains="Nothing to tune, and no work done twice.",
    costs="Compute units wait for links, links for compute units.",
    claims=("shoeybi-2019", "vllm"),
)

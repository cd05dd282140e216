"""Greedy mapping: tensors by what they save for the area they take, each at the lowest address where it fits."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.execution.offload.mapping import MappingGame, MemoryMapping, by_worth, fill, mapping_of


def rule(game: MappingGame, knobs: NoKnobs) -> MemoryMapping:
    """One pass, nothing taken back."""
    return mapping_of(game, fill(game, (), by_worth(game)))


TECHNIQUE = Technique(
    name="greedy-mapping",
    extension_point="execution.mapping",
    rule=rule,
    gains="A mapping in one pass, as compilers make it.",
    costs="An early tensor may keep out several that would have saved more together.",
    claims=("wang-2023",),
)

"""Greedy mapping: tensors by what they save for the area they take, each at the lowest address where it fits."""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.execution.offload.mapping import MappingGame, MemoryMapping, by_worth, fill, mapping_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyMappingKnobs:
    """Nothing to set."""


def rule(game: MappingGame, knobs: GreedyMappingKnobs) -> MemoryMapping:
    """One pass, nothing taken back."""
    return mapping_of(game, fill(game, (), by_worth(game)))


TECHNIQUE = Technique(
    name="greedy-mapping",
    seam="execution.mapping",
    rule=rule,
    knobs=GreedyMappingKnobs,
    gains="A mapping in one pass, as compilers make it.",
    costs="An early tensor may keep out several that would have saved more together.",
    claims=("wang-2023",),
)

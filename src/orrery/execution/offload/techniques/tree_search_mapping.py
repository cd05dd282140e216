"""Tree search: the game played with a look ahead; every position is valued by playing it to its end greedily."""

from dataclasses import dataclass

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.execution.offload.mapping import (
    MappingGame,
    MemoryMapping,
    Placed,
    by_worth,
    fill,
    free_offsets,
    mapping_of,
    worth_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSearchMappingKnobs:
    """``width`` positions are kept after every move; a tensor is tried at ``num_offsets`` addresses, and left out."""

    width: int = 8
    num_offsets: int = 2

    def __post_init__(self) -> None:
        check_above(self, "width", 0)
        check_above(self, "num_offsets", 0)


def rule(game: MappingGame, knobs: TreeSearchMappingKnobs) -> MemoryMapping:
    """A beam over moves "this tensor there" and "this tensor not", valued by a greedy end of the game.

    The first position is played out too, so the answer is never worse than the greedy one. Addresses are tried from
    both ends: the lowest where the tensor fits, and the highest.
    """
    order = by_worth(game)
    best = fill(game, (), order)
    beam: list[Placed] = [()]
    for depth, index in enumerate(order):
        rest, moves = order[depth + 1 :], dict[frozenset[tuple[int, float]], tuple[float, Placed]]()
        for placed in beam:
            offsets = free_offsets(game, placed, index)
            ends = [*offsets[: knobs.num_offsets - 1], *offsets[-1:]] if knobs.num_offsets > 1 else offsets[:1]
            for position in [placed, *(((*placed, (index, at))) for at in dict.fromkeys(ends))]:
                played = fill(game, position, rest)
                value = worth_of(game, played)
                moves[frozenset(position)] = (value, position)
                if value > worth_of(game, best):
                    best = played
        ranked = sorted(moves.values(), key=lambda m: (-m[0], -worth_of(game, m[1]), m[1]))
        beam = [position for _, position in ranked[: knobs.width]]
    return mapping_of(game, best)


TECHNIQUE = Technique(
    name="tree-search-mapping",
    extension_point="execution.mapping",
    rule=rule,
    knobs=TreeSearchMappingKnobs,
    gains="Finds sets of tensors that together save more than what a greedy pass would have let in.",
    costs="Compile time: width x moves games are played to the end.",
    claims=("wang-2023",),
)

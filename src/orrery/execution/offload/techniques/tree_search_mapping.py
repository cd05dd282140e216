"""Tree search: the game played with a look ahead; positions are valued by playing them to their end at random."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.engine.streams import stream
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
    """``width`` positions are kept after every move; a tensor is tried at ``num_offsets`` addresses, and left out.

    A position is worth the best of ``num_playouts`` ends of the game, in each of which tensors come by what they save
    for the area that they take, times e^(noise_ratio x Gumbel draw). Without noise every end is the greedy one.
    """

    width: int = 6
    num_offsets: int = 2
    num_playouts: int = 2
    noise_ratio: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        check_above(self, "width", 0)
        check_above(self, "num_offsets", 0)
        check_above(self, "num_playouts", 0)
        check_range(self, "noise_ratio", 0.0, 100.0)


def rule(game: MappingGame, knobs: TreeSearchMappingKnobs) -> MemoryMapping:
    """A beam over moves "this tensor there" and "this tensor not"; the answer is the best position at its end.

    It does not begin from a greedy mapping and keeps none, so it may end with a worse one. Addresses are tried from
    both ends: the lowest where the tensor fits, and the highest.
    """
    order = by_worth(game)
    draws = stream(knobs.seed, "execution/mapping")
    beam: list[Placed] = [()]
    for depth, index in enumerate(order):
        rest, moves = order[depth + 1 :], dict[frozenset[tuple[int, float]], tuple[float, Placed]]()
        for placed in beam:
            offsets = free_offsets(game, placed, index)
            ends = [*offsets[: knobs.num_offsets - 1], *offsets[-1:]] if knobs.num_offsets > 1 else offsets[:1]
            for position in [placed, *(((*placed, (index, at))) for at in dict.fromkeys(ends))]:
                moves[frozenset(position)] = (_value(game, position, rest, knobs, draws), position)
        ranked = sorted(moves.values(), key=lambda m: (-m[0], -worth_of(game, m[1]), m[1]))
        beam = [position for _, position in ranked[: knobs.width]]
    return mapping_of(game, max(beam, key=lambda position: worth_of(game, position)))


def _value(
    game: MappingGame, position: Placed, rest: list[int], knobs: TreeSearchMappingKnobs, draws: np.random.Generator
) -> float:
    """Time saved at the best of the drawn ends."""
    if knobs.noise_ratio == 0.0 or not rest:
        return worth_of(game, fill(game, position, rest))
    worth = np.log([game.tensors[i].saved_s / (game.tensors[i].size_bytes * game.tensors[i].lifetime) for i in rest])
    found = 0.0
    for _ in range(knobs.num_playouts):
        turns: list[int] = np.argsort(
            -(worth + knobs.noise_ratio * draws.gumbel(size=len(rest))), kind="stable"
        ).tolist()
        found = max(found, worth_of(game, fill(game, position, [rest[i] for i in turns])))
    return found


TECHNIQUE = Technique(
    name="tree-search-mapping",
    extension_point="execution.mapping",
    rule=rule,
    knobs=TreeSearchMappingKnobs,
    gains="Finds sets of tensors that together save more than what a greedy pass would have let in.",
    costs="Compile time: width x moves games are played to the end; an unlucky search ends below the greedy pass.",
    claims=("wang-2023",),
)

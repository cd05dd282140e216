"""The ways in which an operator can run on the devices of one axis of a mesh, from its letters alone. [oneflow-2021]

Cutting a letter cuts every operand that has it; the others are broadcast. The result is cut where it has the letter,
and partial where the operator sums over it. An operator that is linear in some operands also takes those partial.
Cutting a letter that a norm or a softmax runs over takes a few small sums inside, and the result is then never partial.
"""

from dataclasses import dataclass
from itertools import product

from orrery.training.placement.graph import Graph, Op
from orrery.training.placement.state import BROADCAST, PARTIAL, Placement, State, split


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """States of the operands and of the result over one axis; ``letter`` is what is cut, empty where nothing is."""

    inputs: tuple[State, ...]
    output: State
    letter: str = ""

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.inputs))} -> {self.output}"


MeshSignature = tuple[Signature, ...]
"""One for each axis of the mesh."""


def signatures(op: Op, graph: Graph) -> tuple[Signature, ...]:
    """All of one axis: nothing cut, each letter cut, partial operands passed on (weights never are)."""
    letters = [graph.tensors[name].letters for name in op.inputs]
    result = graph.tensors[op.output].letters
    found = [Signature(inputs=(BROADCAST,) * len(letters), output=BROADCAST)]
    for letter in op.splits:
        inputs = tuple(_cut(x, letter, BROADCAST) for x in letters)
        summed = BROADCAST if letter == op.inner else PARTIAL
        found.append(Signature(inputs=inputs, output=_cut(result, letter, summed), letter=letter))
    for operands in op.linear:
        if all(graph.tensors[op.inputs[i]].role != "weight" for i in operands):
            inputs = tuple(PARTIAL if i in operands else BROADCAST for i in range(len(letters)))
            found.append(Signature(inputs=inputs, output=PARTIAL))
    return tuple(found)


def _cut(letters: str, letter: str, otherwise: State) -> State:
    return split(letters.index(letter)) if letter in letters else otherwise


def mesh_signatures(op: Op, graph: Graph, mesh_shape: tuple[int, ...]) -> tuple[MeshSignature, ...]:
    """All of the mesh: one signature an axis, as long as each letter has enough equal pieces."""
    return tuple(
        chosen
        for chosen in product(signatures(op, graph), repeat=len(mesh_shape))
        if all(graph.pieces[x] % ways == 0 for x, ways in num_ways(chosen, mesh_shape).items())
    )


def num_ways(chosen: MeshSignature, mesh_shape: tuple[int, ...]) -> dict[str, int]:
    """Letter -> into how many parts it is cut."""
    ways: dict[str, int] = {}
    for signature, devices in zip(chosen, mesh_shape, strict=True):
        if signature.letter:
            ways[signature.letter] = ways.get(signature.letter, 1) * devices
    return ways


def input_placement(chosen: MeshSignature, operand: int) -> Placement:
    """Required placement of an operand."""
    return tuple(s.inputs[operand] for s in chosen)


def output_placement(chosen: MeshSignature) -> Placement:
    """Placement of the result."""
    return tuple(s.output for s in chosen)

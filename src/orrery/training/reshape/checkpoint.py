"""Save under one layout, turn into atoms, load under another: real arrays, bit for bit.

A state is named by its parameter and its kind: the 32-bit weight and the two moments of Adam, or whatever the caller
trains with. Atoms are whole states without rank, padding or order; every pair of layouts meets in them. [lian-2024]
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.training.reshape.parameter import Array, Parameter, joined, piece, piece_shape
from orrery.training.reshape.shards import Rank, ShardLayout, check_fits, flat_share, stage_of, unflattened

Atoms = Mapping[str, Mapping[str, Array]]
"""Kind of state -> parameter -> the whole array."""

Shard = dict[str, Array]
"""Key -> array: what one rank writes. Keys are "kind/parameter", or "kind/flat" and "kind/flat_experts"."""


class _Local(NamedTuple):
    """The parameters of one rank that share their data-parallel group."""

    parameters: list[Parameter]
    is_expert: bool
    flat_name: str


def load(parameters: Sequence[Parameter], atoms: Atoms, layout: ShardLayout) -> dict[Rank, Shard]:
    """Atoms of every rank of ``layout``; arrays may share their memory with them."""
    check_fits(layout, parameters)
    for kind, states in atoms.items():
        _check_states(parameters, kind, states)
    return {rank: _held(parameters, atoms, layout, rank) for rank in layout.ranks()}


def save(parameters: Sequence[Parameter], atoms: Atoms, layout: ShardLayout) -> dict[Rank, Shard]:
    """Writes of every rank of ``layout``: its shard, but copies only once."""
    experts = {p.name for p in parameters if p.is_expert}
    written = {rank: _own(layout, rank, held, experts) for rank, held in load(parameters, atoms, layout).items()}
    return {rank: shard for rank, shard in written.items() if shard}


def atoms(
    parameters: Sequence[Parameter], shards: Mapping[Rank, Shard], layout: ShardLayout
) -> dict[str, dict[str, Array]]:
    """Whole states from the shards that ``save`` wrote."""
    check_fits(layout, parameters)
    kinds = sorted({key.partition("/")[0] for shard in shards.values() for key in shard})
    return {kind: dict(_whole(parameters, shards, layout, kind)) for kind in kinds}


def _check_states(parameters: Sequence[Parameter], kind: str, states: Mapping[str, Array]) -> None:
    """Refuse missing states, wrong shapes, and types that a flat buffer would have to convert."""
    for p in parameters:
        if p.name not in states:
            raise ScenarioError(f"{p.name}: there is no {kind} of it; write one for every parameter.")
        if states[p.name].shape != p.shape:
            raise ScenarioError(f"{p.name}: {kind} has shape {states[p.name].shape}; write {p.shape}.")
    if len(types := {states[p.name].dtype.str for p in parameters}) > 1:
        raise ScenarioError(f"{kind}: has types {', '.join(sorted(types))}; write one type for each kind of state.")


def _held(parameters: Sequence[Parameter], atoms: Atoms, layout: ShardLayout, rank: Rank) -> Shard:
    """One rank's states: pieces as they are, or their shares of flat buffers."""
    shard: Shard = {}
    for kind, states in atoms.items():
        for local in _locals(parameters, layout, rank.stage):
            size, index = layout.group(local.is_expert), layout.index(rank, local.is_expert)
            pieces = {p.name: _piece(p, states[p.name], layout, rank) for p in local.parameters}
            if layout.zero == 0:
                shard |= {f"{kind}/{name}": array for name, array in pieces.items()}
            elif layout.zero == 3:
                shard |= {f"{kind}/{n}": flat_share(array.ravel(), size, index) for n, array in pieces.items()}
            else:
                flat = np.concatenate([array.ravel() for array in pieces.values()])
                shard[f"{kind}/{local.flat_name}"] = flat_share(flat, size, index)
    return shard


def _own(layout: ShardLayout, rank: Rank, held: Shard, experts: set[str]) -> Shard:
    """This rank's writes: nothing that another rank of its group writes."""
    if layout.zero or rank.data == 0:
        return held
    return {k: a for k, a in held.items() if rank.data < layout.ep and k.partition("/")[2] in experts}


def _locals(parameters: Sequence[Parameter], layout: ShardLayout, stage: int) -> Iterator[_Local]:
    """Parameters of a stage in their order: those of all data ranks, then the experts."""
    for is_expert, name in ((False, "flat"), (True, "flat_experts")):
        here = [p for p in parameters if p.is_expert is is_expert and stage_of(p, parameters, layout.pp) == stage]
        if here:
            yield _Local(here, is_expert, name)


def _piece(parameter: Parameter, whole: Array, layout: ShardLayout, rank: Rank) -> Array:
    """The rank's experts, and its tensor piece of them."""
    if parameter.is_expert:
        whole = np.split(whole, layout.ep)[layout.expert_rank(rank)]
    return piece(parameter, whole, layout.tp, rank.tensor)


def _whole(
    parameters: Sequence[Parameter], shards: Mapping[Rank, Shard], layout: ShardLayout, kind: str
) -> Iterator[tuple[str, Array]]:
    """Every parameter of one kind of state."""
    for stage in range(layout.pp):
        for local in _locals(parameters, layout, stage):
            experts = layout.ep if local.is_expert else 1
            pieces = {
                (e, t): _pieces(shards, layout, kind, local, stage, t, e)
                for e in range(experts)
                for t in range(layout.tp)
            }
            for i, p in enumerate(local.parameters):
                shared = [joined(_part(p, layout), [pieces[e, t][i] for t in range(layout.tp)]) for e in range(experts)]
                yield p.name, np.concatenate(shared) if experts > 1 else shared[0]


def _part(parameter: Parameter, layout: ShardLayout) -> Parameter:
    """The parameter as one expert rank knows it."""
    if not parameter.is_expert:
        return parameter
    shape = (parameter.shape[0] // layout.ep, *parameter.shape[1:])
    return Parameter(
        name=parameter.name,
        shape=shape,
        split=parameter.split,
        stage_position=parameter.stage_position,
        is_expert=True,
        heads=parameter.heads,
        pad_rows=parameter.pad_rows,
    )


def _pieces(
    shards: Mapping[Rank, Shard], layout: ShardLayout, kind: str, local: _Local, stage: int, tensor: int, expert: int
) -> list[Array]:
    """The tensor pieces of one (stage, tensor, expert) place, from its group's shards."""
    size = layout.group(local.is_expert)
    members = [Rank(stage, tensor, g * layout.ep + expert if local.is_expert else g) for g in range(size)]
    keys = [f"{kind}/{p.name}" for p in local.parameters]
    if layout.zero == 0:
        first = Rank(stage, tensor, expert)
        return [_stored(shards, first, key) for key in keys]
    shapes = [piece_shape(_part(p, layout), layout.tp, tensor) for p in local.parameters]
    if layout.zero == 3:
        return [
            unflattened([_stored(shards, m, key) for m in members], [s])[0] for key, s in zip(keys, shapes, strict=True)
        ]
    return unflattened([_stored(shards, m, f"{kind}/{local.flat_name}") for m in members], shapes)


def _stored(shards: Mapping[Rank, Shard], rank: Rank, key: str) -> Array:
    """One array of one rank's shard."""
    if key not in shards.get(rank, {}):
        raise ScenarioError(f"checkpoint: {key} of {rank} is missing; give the shards of the layout that saved them.")
    return shards[rank][key]

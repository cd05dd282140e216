"""Shards by rank: ranks of a layout, pipeline stages, expert ranks, and the flat padded partitions of ZeRO.

Ranks are (stage, tensor, data). Expert ranks lie inside the data ranks: data rank d is expert rank d mod ep, and the
dp / ep ranks with the same expert rank hold the same experts. A group of equal ranks (all data ranks, or for experts
dp / ep of them) shares its states as ``zero`` says:

- 0: every rank holds all; the first one saves.
- 1, 2: one flat buffer of all the rank's parameters in their order, padded to a multiple of the group, cut evenly.
- 3: every parameter flat and padded by itself, cut evenly. [rajbhandari-2020]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.training.reshape.parameter import Array, Parameter, check_degree


class Rank(NamedTuple):
    """One device's place."""

    stage: int
    tensor: int
    data: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLayout:
    """Degrees that decide what a device holds of the training state."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    zero: int = 0

    def __post_init__(self) -> None:
        if min(self.tp, self.pp, self.dp, self.ep) < 1 or self.zero not in (0, 1, 2, 3):
            raise ScenarioError(f"shards: {self}; write degrees from 1 and zero = 0, 1, 2 or 3.")
        if self.dp % self.ep:
            raise ScenarioError(f"shards: ep = {self.ep} does not divide dp = {self.dp}; write a divisor.")

    @property
    def num_ranks(self) -> int:
        """Devices."""
        return self.tp * self.pp * self.dp

    def ranks(self) -> Iterator[Rank]:
        """Every device, stage by stage."""
        yield from (Rank(s, t, d) for s in range(self.pp) for t in range(self.tp) for d in range(self.dp))

    def group(self, is_expert: bool) -> int:
        """How many ranks hold the same."""
        return self.dp // self.ep if is_expert else self.dp

    def index(self, rank: Rank, is_expert: bool) -> int:
        """A rank's place in that group."""
        return rank.data // self.ep if is_expert else rank.data

    def expert_rank(self, rank: Rank) -> int:
        """Which share of the experts."""
        return rank.data % self.ep


def check_fits(layout: ShardLayout, parameters: Sequence[Parameter]) -> None:
    """Refuse a layout that cannot hold the parameters."""
    for p in parameters:
        check_degree(p, layout.tp)
        if p.is_expert and p.shape[0] % layout.ep:
            raise ScenarioError(f"{p.name}: {p.shape[0]} experts over ep = {layout.ep}; write a divisor.")
    deepest = max(p.stage_position for p in parameters)
    if layout.pp > deepest + 1:
        raise ScenarioError(f"shards: pp = {layout.pp} for {deepest + 1} positions; write at most that many stages.")


def stage_of(parameter: Parameter, parameters: Sequence[Parameter], pp: int) -> int:
    """Contiguous stages of nearly equal numbers of positions."""
    positions = max(p.stage_position for p in parameters) + 1
    return parameter.stage_position * pp // positions


def flat_share(flat: Array, ranks: int, index: int) -> Array:
    """Share ``index`` of a flat buffer that is padded with zeros until it can be cut evenly."""
    padded = np.pad(flat, (0, -flat.size % ranks))
    return padded.reshape(ranks, -1)[index]


def unflattened(shares: Sequence[Array], shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Arrays of those shapes from the shares of one flat buffer; the padding goes."""
    flat = shares[0] if len(shares) == 1 else np.concatenate(shares)
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [
        part.reshape(shape) for part, shape in zip(np.split(flat[: ends[-1]], ends[:-1].tolist()), shapes, strict=True)
    ]

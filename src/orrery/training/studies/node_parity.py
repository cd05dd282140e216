"""Parity on real bytes: nodes that are lost at random, what their groups bring back, and whether every bit is there."""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, whole
from orrery.training.faults.erasure import Bytes, decode, encode
from orrery.training.faults.survival import survival_frac, survived_losses_frac


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Groups of nodes, lost nodes that each outlives, bytes that a node holds, and how often a node fails."""

    groups: int = 4
    group_nodes: int = 6
    parity: int = 1
    node_bytes: int = 4096
    mtbf_s: float = 1e7
    rebuild_s: float = 60.0


def run(request: Run) -> tuple[Row, ...]:
    """A row a number of nodes that are lost at once: how often all state came back, counted and by formula."""
    sizes: Sizes = request.sizes
    groups, nodes = whole("groups", sizes.groups, most=256), whole("group_nodes", sizes.group_nodes, least=2, most=64)
    parity = whole("parity", sizes.parity, least=0, most=nodes - 1)
    draws = np.random.default_rng(request.seed)
    data = _data(request, groups, nodes - parity, draws)
    parities = [encode(group, parity) for group in data]
    rows, most = list[Row](), min(groups * parity + 1, groups * nodes)
    tick = counter(request.progress, most + 1)
    for lost in range(most + 1):
        found = [_survives(data, parities, _lost(draws, groups, nodes, lost)) for _ in range(request.steps)]
        rows.append(
            {
                "lost_nodes": lost,
                "came_back_frac": float(np.mean([f is not None for f in found])),
                "by_formula_frac": survived_losses_frac(groups, nodes, parity, lost),
                "bits_equal": all(f is not False for f in found),
                "outlives_a_rebuild_frac": survival_frac(groups, nodes, parity, sizes.rebuild_s, sizes.mtbf_s),
            }
        )
        tick()
    return tuple(rows)


def _data(request: Run, groups: int, pieces: int, draws: np.random.Generator) -> Bytes:
    """(groups, pieces, bytes): drawn, or the user's array of bytes, repeated to fill all nodes."""
    size = whole("node_bytes", request.sizes.node_bytes, most=1 << 24)
    if not request.data:
        return draws.integers(0, 256, (groups, pieces, size), dtype=np.uint8)
    given = np.asarray(request.data.get("state", np.zeros(0)))
    if given.size == 0:
        raise ScenarioError("data: write an array state; its bytes are what the nodes hold.")
    return np.resize(np.frombuffer(np.ascontiguousarray(given).tobytes(), dtype=np.uint8), (groups, pieces, size))


def _lost(draws: np.random.Generator, groups: int, nodes: int, lost: int) -> set[tuple[int, int]]:
    """(group, place) of nodes that go at once, any of them."""
    return {divmod(int(n), nodes) for n in draws.choice(groups * nodes, size=lost, replace=False)}


def _survives(data: Bytes, parities: list[Bytes], lost: set[tuple[int, int]]) -> bool | None:
    """Whether every group's data is what it was; None where a group lost more than its parity."""
    for group, (pieces, parity) in enumerate(zip(data, parities, strict=True)):
        held = {i: piece for i, piece in enumerate((*pieces, *parity)) if (group, i) not in lost}
        if len(held) < len(pieces):
            return None
        if not np.array_equal(decode(held, len(pieces), len(parity)), pieces):
            return False
    return True


EXPERIMENT = Experiment(
    name="node-parity",
    question="How many lost nodes does parity in memory outlive, and does every bit come back?",
    run=run,
    num_steps=100,
    claims=("reft-in-memory-ft",),
    sizes=Sizes,
    reads=("data",),
    keys=("lost_nodes",),
    curve=("lost_nodes", "came_back_frac"),
)

"""Few large flows over the many paths of a fat tree: hashed onto them, or planned.

A flow between two leaf switches may take any spine; it then shares the link up from its leaf and the link down to the
other. Hashing picks a spine for each flow by chance (ECMP), so with about as many flows as links some link gets
several, and a collective, whose parts wait for each other, moves at the pace of the fullest link. Planned, flows are
the edges of a bipartite graph from leaves to leaves and spines are colours: by Koenig's theorem as many colours as the
largest degree suffice, so no link gets more than ceil(flows of the fullest leaf / spines). [koenig-1916], [c4-2024]
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """From a leaf switch to another, at the full rate of a link while it is alone."""

    source: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Times that a collective takes, in parts of the time of flows that meet nobody."""

    hashed_ratio: float  # in the mean
    hashed_p99_ratio: float
    planned_ratio: float

    @property
    def gain_ratio(self) -> float:
        """How many times faster planned paths are, in the mean."""
        return self.hashed_ratio / self.planned_ratio


def fullest_link_probabilities(num_flows: int, num_links: int) -> list[float]:
    """That the fullest of the links gets at most 0, 1, 2, … of the flows, each flow on any link by chance.

    P(max <= k) = flows! / links^flows [x^flows] (sum_{j <= k} x^j / j!)^links, multiplied up link by link so that no
    factorial overflows: flows of the first links are binomial given all.
    """
    if num_flows < 0 or num_links < 1:
        raise ScenarioError(f"flows: got {num_flows} on {num_links} links; write flows from 0 and at least one link.")
    found: list[float] = []
    for most in range(num_flows + 1):
        ways = np.zeros(num_flows + 1)
        ways[0] = 1.0
        for link in range(1, num_links + 1):
            ways = _with_link(ways, link, most)
        found.append(float(ways[num_flows]))
    return found


def _with_link(ways: NDArray[np.float64], link: int, most: int) -> NDArray[np.float64]:
    """From the odds that n flows fit on ``link - 1`` links to those on ``link``: the last one takes j of them."""
    size, more = ways.size, np.zeros(ways.size)
    for n in range(size):
        for j in range(min(n, most) + 1):
            if link > 1 or j == n:
                more[n] += ways[n - j] * math.comb(n, j) * (1.0 / link) ** j * (1.0 - 1.0 / link) ** (n - j)
    return more


def expected_fullest(num_flows: int, num_links: int) -> float:
    """The mean of the flows on the fullest link: the sum over k of P(max > k)."""
    return sum(1.0 - p for p in fullest_link_probabilities(num_flows, num_links)[:-1])


def ring_flows(leaf_of: Sequence[int]) -> list[Flow]:
    """Flows of a ring over members in their order; those within a leaf need no spine."""
    pairs = zip(leaf_of, [*leaf_of[1:], *leaf_of[:1]], strict=True)
    return [Flow(source=a, target=b) for a, b in pairs if a != b]


def contention(
    flows: Sequence[Flow],
    num_spines: int,
    *,
    num_connections: int = 1,
    num_planes: int = 1,
    num_draws: int = 2000,
    seed: int = 0,
) -> Contention:
    """Hashed against planned. A flow may be cut into ``num_connections`` that are hashed each for itself.

    ``num_planes``: so many like networks beside each other (rails, ports), whose slowest counts.
    """
    if not flows:
        return Contention(hashed_ratio=1.0, hashed_p99_ratio=1.0, planned_ratio=1.0)
    spines = stream(seed, "training/paths").integers(
        0, num_spines, (num_draws, num_planes, len(flows) * num_connections)
    )
    each = [flow for flow in flows for _ in range(num_connections)]
    fullest = _fullest(each, spines.reshape(num_draws * num_planes, -1), num_spines)
    times = np.maximum(1.0, fullest.reshape(num_draws, num_planes).max(axis=1) / num_connections)
    return Contention(
        hashed_ratio=float(times.mean()),
        hashed_p99_ratio=float(np.percentile(times, 99)),
        planned_ratio=float(_fullest(flows, plan(flows, num_spines)[None, :], num_spines)[0]),
    )


def _fullest(flows: Sequence[Flow], spines: Ints, num_spines: int) -> Ints:
    """Flows on the fullest link, up or down, of each row of chosen spines."""
    rows: Ints = np.arange(spines.shape[0], dtype=np.int64)[:, None]
    most = np.zeros(spines.shape[0], dtype=np.int64)
    for ends in ([f.source for f in flows], [f.target for f in flows]):
        leaf: Ints = np.asarray(ends, dtype=np.int64)[None, :]
        num_leaves = int(leaf.max()) + 1
        link: Ints = (rows * num_leaves + leaf) * num_spines + spines
        loads = np.bincount(link.ravel(), minlength=spines.shape[0] * num_leaves * num_spines)
        most = np.maximum(most, loads.reshape(spines.shape[0], -1).max(axis=1))
    return most


def plan(flows: Sequence[Flow], num_spines: int) -> Ints:
    """A spine for each flow, so that no link gets more than it must.

    Edge colouring with as many colours as the largest degree, rounded up to whole rounds of the spines: a flow takes a
    colour free at both ends, or makes one free by swapping two colours along the path that they form.
    """
    out, into = _degrees([f.source for f in flows]), _degrees([f.target for f in flows])
    num_colours = -(-max(*out.values(), *into.values()) // num_spines) * num_spines
    at: dict[tuple[bool, int], list[int]] = {
        **{(False, leaf): [-1] * num_colours for leaf in out},
        **{(True, leaf): [-1] * num_colours for leaf in into},
    }
    colour = [-1] * len(flows)
    for i, flow in enumerate(flows):
        here, there = at[False, flow.source], at[True, flow.target]
        a, b = here.index(-1), there.index(-1)
        if there[a] != -1:
            _swap(at, flows, colour, (True, flow.target), a, b)
        colour[i], here[a], there[a] = a, i, i
    return np.array(colour, dtype=np.int64) % num_spines


def _degrees(leaves: Sequence[int]) -> dict[int, int]:
    return {leaf: leaves.count(leaf) for leaf in set(leaves)}


def _swap(
    at: dict[tuple[bool, int], list[int]],
    flows: Sequence[Flow],
    colour: list[int],
    end: tuple[bool, int],
    a: int,
    b: int,
) -> None:
    """Swap colours ``a`` and ``b`` along the path from ``end``, where ``a`` is taken and ``b`` is free."""
    path: list[int] = []
    want, node = a, end
    while (i := at[node][want]) != -1:
        path.append(i)
        is_target = not node[0]
        node = (is_target, flows[i].target if is_target else flows[i].source)
        want = b if want == a else a
    for i in path:
        for side in ((False, flows[i].source), (True, flows[i].target)):
            at[side][colour[i]] = -1
    for i in path:
        colour[i] = b if colour[i] == a else a
        for side in ((False, flows[i].source), (True, flows[i].target)):
            at[side][colour[i]] = i


def job_gain_ratio(communication_frac: float, gain_ratio: float) -> float:
    """How many times faster a job gets when the communication that shows in its steps does.

    1 / (1 - x + x / gain). [amdahl-1967]
    """
    return 1.0 / (1.0 - communication_frac + communication_frac / gain_ratio)

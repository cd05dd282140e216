"""A collective on a leaf-spine fabric: the busiest of hosts' and leaves' links, by how flows are dealt to the spines.

    all-to-all                    n - 1 flows a host, S / n bytes each
    permutation                   a flow a host, S bytes
    all-reduce, around a ring     a flow a host of 2 (n - 1) S / n bytes; half of that for its halves
    time = steps x latency + max(bytes of a host, flows on the busiest link x bytes of a flow) / rate of a link

Every link has a host's rate. Hosts of a ring stand where a scheduler put them: places are drawn. A hash is drawn too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Link
from orrery.network.leaf_spine import LeafFlows, assigned, everyone, hashed, parts_needed, permutation, ring, sprayed

Floats = NDArray[np.float64]

MAX_EDGES = 40_000
"""Parts of flows that paths are assigned to one by one; of more, the theorem's answer stands."""

RING_PASSES: Mapping[str, float] = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """Leaves that each join so many hosts, every leaf joined to every spine."""

    num_leaves: int
    num_spines: int
    num_hosts_per_leaf: int
    link: Link

    @property
    def num_hosts(self) -> int:
        """Below all leaves."""
        return self.num_leaves * self.num_hosts_per_leaf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FabricRun:
    """A collective over all hosts, one entry a draw."""

    time_s: Floats
    busiest_bytes: Floats  # on one link between leaves and spines
    host_bytes: float  # that each host sends
    latency_s: float
    is_by_theorem: bool = False


def _spray(flows: LeafFlows, random: np.random.Generator) -> float:
    return sprayed(flows)


def _single(flows: LeafFlows, random: np.random.Generator) -> float:
    if flows.sources.size * parts_needed(flows) > MAX_EDGES:
        return sprayed(flows)
    return assigned(flows)


ROUTINGS: Mapping[str, Callable[[LeafFlows, np.random.Generator], float]] = {
    "spray": _spray,
    "ecmp": hashed,
    "singlepath": _single,
}
"""Flows on the busiest link: every flow over all spines; each on one by a hash; parts on one each, all in view."""


def _in_parts(flow_parts: int, flows: LeafFlows, random: np.random.Generator) -> float:
    if flows.sources.size * min(flow_parts, parts_needed(flows)) > MAX_EDGES:
        raise OutOfRange(f"more than {MAX_EDGES:,} parts of flows; write a smaller fabric, or fewer flow_parts.")
    return assigned(flows, flow_parts)


def run(
    kind: str, message_bytes: float, fabric: Fabric, routing: str, num_draws: int, seed: int, flow_parts: int = 0
) -> FabricRun:
    """All draws of one collective; ``flow_parts`` bounds the parts of a flow on single paths, 0 does not."""
    if kind not in ("all_to_all", "permutation", *RING_PASSES):
        known = ", ".join(("all_to_all", "permutation", *RING_PASSES))
        raise OutOfRange(f"{kind} over a fabric is not counted; known are {known}.")
    n, random = fabric.num_hosts, np.random.default_rng(seed)
    each = message_bytes / n
    sizes = (fabric.num_leaves, fabric.num_spines, fabric.num_hosts_per_leaf)
    if kind == "all_to_all":
        host_bytes, flow_bytes, steps = (n - 1) * each, each, 1
        drawn = [everyone(*sizes)] * (num_draws if routing == "ecmp" else 1)
    elif kind == "permutation":
        host_bytes = flow_bytes = message_bytes
        steps, drawn = 1, [permutation(*sizes, random) for _ in range(num_draws)]
    else:
        steps = int(RING_PASSES[kind] * (n - 1))
        host_bytes = flow_bytes = steps * each
        drawn = [ring(*sizes, random) for _ in range(num_draws)]
    is_cut = bool(flow_parts) and routing == "singlepath"
    rule = partial(_in_parts, flow_parts) if is_cut else ROUTINGS[routing]
    busiest = np.array([rule(flows, random) for flows in drawn]) * flow_bytes
    latency_s = steps * fabric.link.latency_s
    is_large = any(f.sources.size * parts_needed(f) > MAX_EDGES for f in drawn[:1])
    return FabricRun(
        time_s=latency_s + np.maximum(busiest, host_bytes) / fabric.link.each_way_bytes_per_s,
        busiest_bytes=busiest,
        host_bytes=host_bytes,
        latency_s=latency_s,
        is_by_theorem=routing == "singlepath" and is_large and not is_cut,
    )


def ring_slowdowns(fabric: Fabric, routing: str, *, num_planes: int, num_draws: int, seed: int) -> Floats:
    """How many times as long a ring over all hosts takes as on links that it has to itself, one entry a draw.

    Hosts stand in the ring as a scheduler dealt them, and each has a port in ``num_planes`` like fabrics, which carry a
    ring each: a collective waits for the slowest of them.
    """
    random, rule = np.random.default_rng(seed), ROUTINGS[routing]
    sizes = (fabric.num_leaves, fabric.num_spines, fabric.num_hosts_per_leaf)
    found = np.ones(num_draws)
    for draw in range(num_draws):
        flows = ring(*sizes, random)
        if flows.sources.size:
            planes = num_planes if routing == "ecmp" else 1  # the others deal alike in every plane
            found[draw] = max(1.0, *(rule(flows, random) for _ in range(planes)))
    return found

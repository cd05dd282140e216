"""Where a deployment's experts lie, by their routes, and what of a token's way that leaves.

in-order         the first experts of every layer on the first rank, as engines load them; a token's results come home
copied-context   the same, and every rank keeps the context of all: a token stays where its main expert was, so one
                 exchange a layer is left, and the new keys and values of all tokens are gathered by all ranks
exflow           copied context, and experts near those that they follow [exflow-2024]
moetuner         copied context, groups of even load near those that they follow, by integer programs [moetuner-2025]

A placement is kept only where it does better than the order on tokens that it was not found on.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from orrery.base.units import percent
from orrery.execution.batch import Batch
from orrery.execution.experts.affinity import Ints
from orrery.execution.experts.placement import distances, fullest, hops, in_order, near_followed
from orrery.execution.experts.tuned import tuned
from orrery.execution.layout import Deployment
from orrery.execution.routes import BY_ROUTES, COPIED, EXFLOW, MOETUNER, Routes
from orrery.kernels.ops import Popularity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """A placement of all layers. Shares are of a token's ways to the experts of the next layer; loads over the mean."""

    method: str
    where: Ints  # layers x experts, a rank each
    is_moved: bool  # False: in order
    is_copied: bool  # every rank keeps the context of all
    leaves_device_frac: float
    leaves_node_frac: float
    ordered_device_frac: float  # the same with experts in order
    ordered_node_frac: float
    fullest_ratio: float
    ordered_fullest_ratio: float
    load_gap_frac: float | None = None  # of the integer programs; None: none ran
    way_gap_frac: float | None = None

    @property
    def crowd_ratio(self) -> float:
        """Tokens of the fullest rank over the mean, where tokens stay with their main experts; else 1."""
        return self.fullest_ratio if self.is_copied else 1.0


def placed(deployment: Deployment) -> Placed | None:
    """Where experts lie that are placed by their routes; None where they are not."""
    method, routes, layout = deployment.expert_placement, deployment.expert_routes, deployment.layout
    if method not in BY_ROUTES or routes is None or layout.ep < 2 or layout.pp > 1:
        return None
    per_node = max(1, deployment.cluster.devices_per_node // layout.expert_tp)
    is_copied = deployment.num_contexts > 1
    if method != MOETUNER and not is_copied:
        return None
    return _placed(routes, method, layout.ep, min(per_node, layout.ep), is_copied)


@lru_cache(maxsize=128)
def _placed(routes: Routes, method: str, num_ranks: int, per_node: int, is_copied: bool) -> Placed | None:
    layers, experts = routes.loads_frac.shape
    order = in_order(layers, experts, num_ranks)
    load_gap = way_gap = None
    where = order
    if method == EXFLOW:
        where = near_followed(routes.moves_frac, distances(num_ranks, per_node))
    elif method == MOETUNER:
        found = tuned(routes.moves_frac, num_ranks, per_node)
        where, load_gap = found.where, found.load_gap_frac
        way_gap = (found.way_ratio - found.way_bound_ratio) / found.way_ratio if found.way_ratio > 0.0 else 0.0
    ordered, new = hops(routes.judged_frac, order, per_node), hops(routes.judged_frac, where, per_node)
    full, ordered_full = fullest(routes.judged_frac, where), fullest(routes.judged_frac, order)
    is_better = sum(new) < sum(ordered) - 1e-9 if is_copied and method == EXFLOW else full < ordered_full - 1e-9
    if method == MOETUNER and is_copied:
        is_better = is_better or (sum(new) < sum(ordered) - 1e-9 and full <= ordered_full + 1e-9)
    if not is_better:
        where, new, full = order, ordered, ordered_full
        if not is_copied:
            return None
    return Placed(
        method=method,
        where=where,
        is_moved=is_better,
        is_copied=is_copied,
        leaves_device_frac=new[0],
        leaves_node_frac=new[1],
        ordered_device_frac=ordered[0],
        ordered_node_frac=ordered[1],
        fullest_ratio=full,
        ordered_fullest_ratio=ordered_full,
        load_gap_frac=load_gap,
        way_gap_frac=way_gap,
    )


def popularity_of(deployment: Deployment) -> Popularity | None:
    """Popularity of experts, and the rank that holds each one where they are placed."""
    law, found = deployment.expert_loads, placed(deployment)
    if found is None or deployment.expert_routes is None or not (found.is_moved or (law and law.layers)):
        return law
    return _law(deployment.expert_routes, found, law or Popularity())


@lru_cache(maxsize=128)
def _law(routes: Routes, found: Placed, law: Popularity) -> Popularity:
    return replace(law, layers=routes.shares, ranks=tuple(tuple(row) for row in found.where.tolist()))


def busiest_ratio(deployment: Deployment) -> float:
    """Tokens that reach the fullest rank over the mean, where loads are known layer by layer; else 1."""
    law, ep = deployment.expert_loads, deployment.layout.ep
    if law is None or not law.layers or ep < 2 or deployment.num_redundant_experts:
        return 1.0
    found = placed(deployment)
    return found.fullest_ratio if found else _in_order_ratio(law.layers, ep)


@lru_cache(maxsize=128)
def _in_order_ratio(layers: tuple[tuple[float, ...], ...], ep: int) -> float:
    each = np.array(layers).reshape(len(layers), ep, -1).sum(axis=2)
    return float((each.max(axis=1) * ep / each.sum(axis=1)).mean())


def crowded(deployment: Deployment, batch: Batch) -> Batch:
    """Tokens of the fullest rank over the mean in a step of ``batch``, where tokens stay with experts."""
    found = placed(deployment)
    if found is None or found.crowd_ratio <= 1.0:
        return batch
    ratio = found.crowd_ratio
    return replace(
        batch,
        prompt_tokens=np.ceil(batch.prompt_tokens * ratio).astype(np.int64),
        prompt_context_tokens=np.maximum(
            batch.prompt_context_tokens, np.ceil(batch.prompt_tokens * ratio).astype(np.int64)
        ),
        decode_sequences=np.ceil(batch.decode_sequences * ratio).astype(np.int64),
    )


def way_scales(found: Placed, num_ranks: int, per_node: int) -> tuple[float, float]:
    """Shares of a plain all-to-all's message (n - 1 of n parts leave the device) that a placement sends between nodes,
    and inside a node among its own devices."""
    inside = min(per_node, num_ranks)
    between = 0.0
    if num_ranks > inside:
        between = found.leaves_node_frac * num_ranks / (num_ranks - inside)
    within = (found.leaves_device_frac - found.leaves_node_frac) * inside / (inside - 1.0) if inside > 1 else 0.0
    return between, within


def placed_note(deployment: Deployment) -> str:
    """Effect of a requested placement, or the reason why it has none."""
    method, routes, layout = deployment.expert_placement, deployment.expert_routes, deployment.layout
    if method not in BY_ROUTES:
        return ""
    found = placed(deployment)
    if found is None:
        return f"expert_placement = {method}: no effect on this deployment: {_why_not(deployment, routes)}"
    text = (
        f"expert_placement: {method}, {percent(found.leaves_device_frac)} of the ways to the next experts leave the "
        f"device ({percent(found.ordered_device_frac)} in order), {percent(found.leaves_node_frac)} the node "
        f"({percent(found.ordered_node_frac)}); fullest rank {found.fullest_ratio:.2f} of the mean "
        f"({found.ordered_fullest_ratio:.2f})"
    )
    if found.load_gap_frac is not None and found.way_gap_frac is not None:
        text += f"; proven within {percent(found.load_gap_frac, 1)} (loads) and {percent(found.way_gap_frac, 1)} (ways)"
    if not found.is_moved and method != COPIED:
        text += "; experts stay in order: nothing was gained on tokens that the placement was not found on"
    if found.is_copied:
        text += f"; every device keeps the contexts of {layout.dp} ranks"
    return text


def _why_not(deployment: Deployment, routes: Routes | None) -> str:
    layout = deployment.layout
    if layout.ep < 2:
        return "ep is 1: every device holds every expert"
    if layout.pp > 1:
        return f"pp is {layout.pp}: layers of other stages lie on other ranks"
    if not layout.shares_experts and deployment.expert_placement != MOETUNER:
        return "dp is 1: no token leaves its rank for an expert"
    if layout.expert_tp > 1:
        return f"experts are cut over {layout.expert_tp} devices"
    if routes is None:
        return "no loads are known: write --expert-loads with a routing trace, zipf:S or zipf:S+affinity:F"
    if not routes.has_affinity and deployment.expert_placement != MOETUNER:
        return "in expert_loads nothing follows anything: write a routing trace, or zipf:S+affinity:F"
    return "every rank gets as many tokens already"

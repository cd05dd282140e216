"""Reasons why a plan was rejected, as text: the smallest change to it that is known to work."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from orrery.execution.layout import Layout
from orrery.execution.memory import Infeasible
from orrery.planner.goal import Goal
from orrery.planner.space import Candidate


def explain(
    goal: Goal,
    rejected: Candidate,
    reason: str,
    infeasible: Infeasible,
    plans: Sequence[Candidate],
    others: Sequence[Candidate],
) -> Infeasible:
    """The shortfall, with the nearest plan that works; else the nearest that at least fits; else a way out."""
    where = described(rejected)
    what = infeasible.what if reason == "memory" else f"{where}: {infeasible.what}"
    if near := nearest_to(rejected, plans):
        return replace(infeasible, what=what, smallest_change=f"{difference(rejected, near)} works.")
    if reason in ("memory", "length") and (near := nearest_to(rejected, others)):
        return replace(infeasible, what=what, smallest_change=f"{difference(rejected, near)} fits.")
    return replace(infeasible, what=what, smallest_change=_way_out(goal, reason, infeasible))


def _way_out(goal: Goal, reason: str, infeasible: Infeasible) -> str:
    """Advice where nothing in the space works."""
    if reason == "objective":
        metric = infeasible.what.split(" ", 1)[0]
        limit_ms = infeasible.have * 1.02e3
        return f"Relax {metric} to {limit_ms:.3g} ms (--slo {metric}:{limit_ms:.3g}), or name a faster device."
    if reason == "devices":
        return f"Allow {infeasible.need:.0f} devices (--max-devices {infeasible.need:.0f}), or relax the objectives."
    if reason == "length":
        return "Use more devices a replica, or an FP8 cache (--kv fp8)."
    return infeasible.smallest_change or "Choose another device or format."


def nearest_to(rejected: Candidate, plans: Iterable[Candidate]) -> Candidate | None:
    """The plan that differs in the fewest words; of equals the first."""
    return min(plans, key=lambda p: distance(rejected, p), default=None)


def distance(a: Candidate, b: Candidate) -> float:
    """Size of a change: formats 1 each, a degree 1 (and more the further it moves), a device 3."""
    x, y = a.deployment, b.deployment
    formats = (x.formats.weights != y.formats.weights) + (x.formats.kv != y.formats.kv)
    device = 3 * (x.cluster.device.name != y.cluster.device.name)
    moved = sum(
        1 + abs(m.bit_length() - n.bit_length()) / 4
        for m, n in zip(_degrees(x.layout), _degrees(y.layout), strict=True)
        if m != n
    )
    budget = 0.25 * (x.max_num_batched_tokens != y.max_num_batched_tokens)
    return formats + device + moved + budget


def _degrees(layout: Layout) -> tuple[int, ...]:
    return layout.tp, layout.pp, layout.dp, layout.ep, layout.cp


def described(candidate: Candidate) -> str:
    """A candidate in a few words."""
    d = candidate.deployment
    return f"{d.cluster.device.name} {d.layout} {d.formats.weights}, kv {d.formats.kv}"


def difference(a: Candidate, b: Candidate) -> str:
    """Changes from a to b: ``tp = 4, weights = fp8``."""
    x, y = a.deployment, b.deployment
    changes = [
        f"{name} = {getattr(y.layout, name)}"
        for name in ("tp", "pp", "dp", "ep")
        if getattr(x.layout, name) != getattr(y.layout, name)
    ]
    if x.cluster.device.name != y.cluster.device.name:
        changes.insert(0, f"device = {y.cluster.device.name}")
    for name in ("weights", "kv"):
        if getattr(x.formats, name) != getattr(y.formats, name):
            changes.append(f"{name} = {getattr(y.formats, name)}")
    if not changes and x.max_num_batched_tokens != y.max_num_batched_tokens:
        changes.append(f"max_num_batched_tokens = {y.max_num_batched_tokens}")
    return ", ".join(changes) or "The same"

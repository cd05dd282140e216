"""Redundant experts: whether a layout can hold so many copies."""

from orrery.execution.layout import Deployment, Layout
from orrery.models.model import Model


def why_not(model: Model, layout: Layout, num_redundant: int) -> str:
    """Why ranks cannot hold so many copies of popular experts beside the experts themselves; blank where they can.

    All ranks hold as many experts, and no rank needs two copies of one.
    """
    counts = {b.experts.num_experts for b in model.blocks if b.experts}
    if not num_redundant:
        return ""
    if not counts:
        return f"{model.name} has no experts; leave num_redundant_experts out"
    if layout.ep < 2:
        return "copies even out ranks that hold different experts; write ep above 1"
    ep, most = layout.ep, min(counts) * (layout.ep - 1)
    if num_redundant > most:
        return f"every rank would hold every expert with {most}; write at most that"
    if any((count + num_redundant) % ep for count in counts):
        least = ep - max(counts) % ep
        near = max(least, (num_redundant + max(counts)) // ep * ep - max(counts))
        return f"{max(counts)} experts and {num_redundant} copies do not fill {ep} ranks evenly; write {near}"
    return ""


def redundant_note(deployment: Deployment) -> str:
    """The note on copies that gain nothing; blank where they may."""
    loads = deployment.expert_loads
    if deployment.num_redundant_experts and loads and loads.is_dealt:
        return "num_redundant_experts: loads are even already; copies take memory and gain nothing"
    return ""

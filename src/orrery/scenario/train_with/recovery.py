"""Pipeline stages that their neighbours compute too, so that the loss of one costs no step."""

from dataclasses import replace

from orrery.base.errors import ScenarioError
from orrery.scenario.schema import Scenario
from orrery.scenario.train_with.changed import Changed
from orrery.training.forward import forward_pass_s

REDUNDANT = "redundant forward"
"""The part of a step in which each stage computes its neighbour's forward pass."""


def with_recovery(scenario: Scenario, plain: Changed) -> Changed:
    """With redundant stages: a second forward pass, and the next stage's weights and optimizer beside the own."""
    if scenario.recovery is None:
        return plain
    if plain.layout.pp == 1:
        raise ScenarioError("recovery: pp is 1, so a stage has no neighbour; write pp, or leave recovery out.")
    if scenario.recovery != "redundant":
        return plain
    ranks = plain.ranks
    doubled = [
        replace(own, parts=own.parts | {n: own.parts[n] + after.parts[n] for n in ("weights", "optimizer")})
        for own, after in zip(ranks, (*ranks[1:], ranks[0]), strict=True)
    ]
    changed = plain.with_parts({REDUNDANT: forward_pass_s(plain.parts)})
    return replace(changed, ranks=tuple(doubled))

"""Training over groups of nodes that no fast link joins: where stages and rings go, and what a step takes."""

from orrery.training.islands.fleet import Fleet, NodeGroup
from orrery.training.islands.partition import adapted_layers, even_layers
from orrery.training.islands.step import GroupedStep, grouped_step

__all__ = ["Fleet", "GroupedStep", "NodeGroup", "adapted_layers", "even_layers", "grouped_step"]

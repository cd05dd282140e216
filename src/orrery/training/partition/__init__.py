"""Training state cut at several levels of a machine: what travels where under a plan, and what a step costs."""

from orrery.training.partition.registry import get_plan, plan_names
from orrery.training.partition.step import PartitionedStep, largest_fitting, partitioned_step, ranked
from orrery.training.partition.traffic import Exchange, Traffic, traffic_of

__all__ = [
    "Exchange",
    "PartitionedStep",
    "Traffic",
    "get_plan",
    "largest_fitting",
    "partitioned_step",
    "plan_names",
    "ranked",
    "traffic_of",
]

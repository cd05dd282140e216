"""Training state cut at several levels of a machine: what travels where under a plan, and what a step costs."""

from orrery.training.partition.registry import PARTITIONS, get_plan
from orrery.training.partition.step import PartitionedStep, largest_fitting, partitioned_step, ranked
from orrery.training.partition.traffic import Exchange, Traffic, traffic_of

__all__ = [
    "PARTITIONS",
    "Exchange",
    "PartitionedStep",
    "Traffic",
    "get_plan",
    "largest_fitting",
    "partitioned_step",
    "ranked",
    "traffic_of",
]

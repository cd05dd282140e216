"""Small real training in numpy: learning rules, layer-wise and stale updates that can be watched converging."""

from orrery.training.small.data import Dataset, Split, clusters
from orrery.training.small.layerwise import layerwise_descent
from orrery.training.small.learning import Settings, Trained
from orrery.training.small.pricing import Price, price
from orrery.training.small.stale import stale_outer_descent
from orrery.training.small.work import Sizes, StepWork

__all__ = [
    "Dataset",
    "Price",
    "Settings",
    "Sizes",
    "Split",
    "StepWork",
    "Trained",
    "clusters",
    "layerwise_descent",
    "price",
    "stale_outer_descent",
]

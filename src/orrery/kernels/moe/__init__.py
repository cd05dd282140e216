"""Routed feed-forward blocks: permute, grouped products, activation, combine, on the busiest rank."""

from orrery.kernels.moe.routing import RANDOM
from orrery.kernels.moe.rule import predict

__all__ = ["RANDOM", "predict"]

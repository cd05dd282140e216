"""Gradient codes: redundant work that lets a sum of gradients be recovered without the slowest workers."""

from orrery.base.extension_points import ExtensionPoint
from orrery.training.coding import techniques
from orrery.training.coding.gradient_code import GradientCode, gradient_code
from orrery.training.coding.multiplexed import Multiplexed
from orrery.training.coding.plain import Plain
from orrery.training.coding.runtime import WorkerPace, run_s, worker_times_s
from orrery.training.coding.scheme import CodingKnobs, Scheme
from orrery.training.coding.selective import SelectiveRepetition
from orrery.training.coding.stragglers import gilbert_elliott, is_bursty

__all__ = [
    "CODES",
    "CodingKnobs",
    "GradientCode",
    "Multiplexed",
    "Plain",
    "Scheme",
    "SelectiveRepetition",
    "WorkerPace",
    "gilbert_elliott",
    "gradient_code",
    "is_bursty",
    "run_s",
    "worker_times_s",
]

CODES = ExtensionPoint(name="training.straggler", folder=techniques, noun="straggler coding")

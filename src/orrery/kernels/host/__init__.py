"""Kernels that run one after another on a CPU, a library call each: what a NumPy or PyTorch program does there."""

from orrery.kernels.host.amounts import amounts
from orrery.kernels.host.rule import LAW, calibration, key, predict, serves

__all__ = ["LAW", "amounts", "calibration", "key", "predict", "serves"]

"""One operator on one or several devices: its time, what binds it, and its variants side by side."""

from orrery.scenario.kernel.answer import KernelAnswer, Measured
from orrery.scenario.kernel.run import predict_kernel

__all__ = ["KernelAnswer", "Measured", "predict_kernel"]

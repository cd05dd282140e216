"""cost(op, device): how long one kernel takes, which roof it hits, and how sure we are."""

from orrery.kernels.dispatch import calibration, predict, predict_with_constants, spread, spreads

__all__ = ["calibration", "predict", "predict_with_constants", "spread", "spreads"]

"""Recurrent token mixers: state-space layers and linear attention, whose memory is a fixed state per sequence."""

from orrery.kernels.recurrent.rule import calibration, predict

__all__ = ["calibration", "predict"]

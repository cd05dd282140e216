"""Softmax attention over a prompt, a chunk of one, or a decode step's cache."""

from orrery.kernels.attention.decode import predict_decode
from orrery.kernels.attention.prefill import predict_prefill

__all__ = ["predict_decode", "predict_prefill"]

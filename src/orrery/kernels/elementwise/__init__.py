"""Norms, rotary embedding, activations, additions, quantising, sampling: work whose time is bytes and launches."""

from orrery.kernels.elementwise.rule import predict

__all__ = ["predict"]

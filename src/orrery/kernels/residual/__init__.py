"""Learned corrections of a physical rule: small forests of trees, applied only where they were measured."""

from orrery.kernels.residual.rule import CAP, correction

__all__ = ["CAP", "correction"]

"""Experiments, one file each; see ``orrery.base.experiment``."""

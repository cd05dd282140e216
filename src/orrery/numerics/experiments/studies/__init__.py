"""Experiments, one file each; see ``orrery.numerics.experiments.experiment``."""

"""Experiments with learned predictors, a file each."""

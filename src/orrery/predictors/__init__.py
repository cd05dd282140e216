"""Learned predictors of speed from samples: small ones, tried against physics and plain baselines."""

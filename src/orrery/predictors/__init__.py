"""What can be learned of speed from samples: small predictors, tried against physics and plain baselines."""

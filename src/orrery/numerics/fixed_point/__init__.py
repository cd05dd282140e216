"""Fixed point with a learned binary point: casts with gradients, weights without multipliers, and the circuit."""

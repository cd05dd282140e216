"""A number format for each layer: least perturbation under limits on latency, size and energy, solved exactly."""

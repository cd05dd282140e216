"""Inputs of set-ups: searches over networks, blocks and formats."""

INPUTS: dict[str, str] = {
    "workload_ratio": "sequences at once on one device, in those of the network that a search starts from",
    "num_child_parameters": "of the network that a search ends with, at most",
    "num_population": "networks of one generation",
    "num_generations": "generations of an evolutionary search",
    "num_search_epochs": "passes over the training set that one network of a search is trained for",
    "most_parameters_frac": "of the largest network's parameters that one of the first generation may have",
    "cost_frac": "cost that a mixture may have, between all layers at the narrowest (0) and all at the widest (1)",
}
UNITS = frozenset({"gpu_days", "gpu_hours"})
"""Device time of a search."""

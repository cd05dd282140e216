"""Goals, search spaces, Pareto fronts and launch commands."""

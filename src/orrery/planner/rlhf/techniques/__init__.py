"""Ways to place the calls of an RLHF iteration (``planner.rlhf``): from the space of placements to a plan."""

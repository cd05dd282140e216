"""Ways to place the calls of an RLHF iteration (seam planner.rlhf): from the space of placements to a plan."""

"""The tables that the loop runs on: one row a request, lane, unit, machine or deployment; their columns by name."""

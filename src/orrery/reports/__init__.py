"""Reports: one page from any plan, estimate, simulation, sweep or training search, for whoever pays."""

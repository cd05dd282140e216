"""Microbenchmarks of the machine at hand: latencies, rates and overheads, each a row of its own."""

"""Traffic to latency in closed form: static batches, offline runs, fixed concurrency."""

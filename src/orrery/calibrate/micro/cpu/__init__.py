"""Microbenchmarks of the processor that runs this process."""

"""Which acceleration to switch on for a task on a device: a history of simulated runs, and what learns from it."""

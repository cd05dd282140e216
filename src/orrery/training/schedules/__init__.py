"""Pipeline schedules: the order of work on every rank, and what it does to a step."""

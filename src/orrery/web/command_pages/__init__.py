"""Pages of the questions that have a command of their own: what-if, kernel, plan --disaggregate."""

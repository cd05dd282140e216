"""Server processors, machines built of them, and scores of benchmark suites on these."""

"""The timeline of a run."""

"""Answers that fit a user's machine and logs: measure it, correct by them, and say why a run is slower than said."""

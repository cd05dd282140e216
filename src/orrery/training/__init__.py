"""Whole training runs: schedules and steps to tokens, failures and checkpoints to goodput."""

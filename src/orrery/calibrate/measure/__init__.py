"""Timing real work on the machine that orrery runs on."""

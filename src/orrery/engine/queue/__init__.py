"""Queues and clocks of compiled event loops."""

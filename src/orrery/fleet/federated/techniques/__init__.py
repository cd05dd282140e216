"""Schedules of federated clients, one file each."""

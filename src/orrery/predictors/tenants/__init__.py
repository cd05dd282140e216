"""Tenants of one host: how they slow each other, and what the host's counters show of it."""

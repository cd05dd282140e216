"""Autoscalers, one a file."""

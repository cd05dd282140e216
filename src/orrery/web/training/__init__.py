"""Inputs of a training job's page."""

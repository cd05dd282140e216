"""Loops on a cluster of small cores that share banks of memory: instructions counted, one a cycle and core."""

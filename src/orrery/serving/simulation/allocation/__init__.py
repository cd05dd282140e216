"""Allocations of requests, and their release: seats, blocks of their own and of lenders, their place in a queue."""

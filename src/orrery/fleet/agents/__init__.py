"""Agents: sessions of many turns on a growing context, what of it a cache still holds, and what a task costs."""

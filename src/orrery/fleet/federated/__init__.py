"""Clients that train one model on data they keep: when each is heard, and what comes of it."""

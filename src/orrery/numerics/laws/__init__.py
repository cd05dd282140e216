"""Scaling laws of low precision: what loss a model reaches that is trained in few bits. One file a law."""

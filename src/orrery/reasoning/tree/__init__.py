"""Nodes of a search tree, and the dealing of a width among its candidates."""

"""Routers between regions, one file each; found because they are here."""

"""Recipes for quantising a layer after training: one file each, found because it is here."""

"""Recipes that make a layer fit a coarse grid: bases, grids, roundings and corrections that really compute."""

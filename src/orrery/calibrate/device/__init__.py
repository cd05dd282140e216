"""A device file of one's own machine, from a few measurements chosen one after the other."""

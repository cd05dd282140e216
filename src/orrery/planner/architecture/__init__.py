"""A network out of a space of networks: an alternative for every choice, best by some metrics, limited in others."""

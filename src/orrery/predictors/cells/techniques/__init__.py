"""Rules for the latency of networks of cells, a file each; see ``orrery.predictors.cells.learned``."""

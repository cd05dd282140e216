"""Rules for scores of machines from their features, a file each; see ``orrery.predictors.processors.learned``."""

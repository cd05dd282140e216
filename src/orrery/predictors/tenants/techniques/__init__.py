"""Rules for a VM's slowdown from a host's counters, a file each; see ``orrery.predictors.tenants.learned``."""

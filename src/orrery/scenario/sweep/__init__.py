"""Many simulated runs at once: every combination of some settings, on all cores or on a cluster."""

from orrery.scenario.sweep.run import Swept, sweep

__all__ = ["Swept", "sweep"]

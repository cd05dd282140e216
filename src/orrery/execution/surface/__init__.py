"""Cost of any step of a deployment, from tables: the clock of a simulation that takes millions of steps."""

from orrery.execution.surface._kernel import Surface, device_cost, shared_cost
from orrery.execution.surface.build import stacked, surface_of

__all__ = ["Surface", "device_cost", "shared_cost", "stacked", "surface_of"]

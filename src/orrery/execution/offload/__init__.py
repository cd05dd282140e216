"""Memory tiers of training: what stays on the device, what goes to host memory and drives, and what a step then takes.

A schedule is a technique at ``execution.offload``: from the work of a step and the tiers below the device to seconds,
and bytes in each tier. Assigning tensors to a small fast memory is ``execution.mapping``.
"""

from orrery.base.extension_points import ExtensionPoint
from orrery.execution.offload import techniques

OFFLOADS = ExtensionPoint(name="execution.offload", folder=techniques, noun="offload")
MAPPINGS = ExtensionPoint(name="execution.mapping", folder=techniques, noun="mapping")

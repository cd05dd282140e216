"""One picture over many devices: each denoises a patch and remembers the others' from the step before.

What attention reads of the other patches, and so what is sent, is a technique at ``execution.patches``.
"""

from orrery.base.extension_points import ExtensionPoint
from orrery.execution.patches import techniques
from orrery.execution.patches.shared import Exchanged, Shared

__all__ = ["PATCHES", "Exchanged", "Shared"]

PATCHES = ExtensionPoint(name="execution.patches", folder=techniques, noun="patch context")

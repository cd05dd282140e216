"""One picture over many devices: each denoises a patch and remembers the others' from the step before.

What attention reads of the other patches, and so what is sent, is a technique at the seam ``execution.patches``.
"""

from orrery.base.errors import UnknownName
from orrery.base.extension_points import techniques_at
from orrery.base.technique import Technique
from orrery.execution.patches import techniques
from orrery.execution.patches.shared import Exchanged, Shared

SEAM = "execution.patches"
PREFIX, SUFFIX = "patch-", "-context"

__all__ = ["Exchanged", "Shared", "get_patches", "patch_contexts"]


def patch_contexts() -> tuple[str, ...]:
    """Short names of what attention can read: those of the techniques without what all of them have."""
    return tuple(name.removeprefix(PREFIX).removesuffix(SUFFIX) for name in techniques_at(techniques, SEAM))


def get_patches(context: str) -> Technique:
    """The technique of that short name; its ``rule`` takes what is Shared and its ``knobs``."""
    found = techniques_at(techniques, SEAM)
    name = f"{PREFIX}{context}{SUFFIX}"
    if name not in found:
        raise UnknownName("patch context", context, patch_contexts())
    return found[name]

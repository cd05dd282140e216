"""One picture over many devices: each denoises a patch and remembers the others' from the step before.

What attention reads of the other patches, and so what is sent, is a technique at the seam ``execution.patches``.
"""

from collections.abc import Mapping

from orrery.base.errors import UnknownName
from orrery.base.extension_points import techniques_at
from orrery.base.technique import Technique
from orrery.execution.patches import techniques
from orrery.execution.patches.picture import Denoised, Picture, alone

SEAM = "execution.patches"

__all__ = ["Denoised", "Picture", "alone", "get_patches"]


def get_patches(name: str) -> Technique:
    """The technique of that name; its ``rule`` takes a Picture and its ``knobs``."""
    found: Mapping[str, Technique] = techniques_at(techniques, SEAM)
    if name not in found:
        raise UnknownName("patch parallelism", name, found)
    return found[name]

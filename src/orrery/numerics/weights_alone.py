"""Weights of 1 to 8 bits by groups, beside 16-bit activations, as people spell them: ``int5/128:fp16``."""

import re
from functools import lru_cache

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

_SPELLED = re.compile(r"(?P<sign>u?)int(?P<bits>[1-8])/(?P<group>[1-9]\d{0,5})(?::(?P<scale>fp16|bf16))?")


@lru_cache(maxsize=1024)
def weights_alone(name: str) -> Format | None:
    """The format that ``name`` spells out; None where it spells none. One bit is a sign.

    >>> weights_alone("int5/128:fp16").bits_per_element
    5.125
    """
    found = _SPELLED.fullmatch(name.strip().casefold())
    if found is None:
        return None
    bits, group = int(found["bits"]), int(found["group"])
    scale = get_element(found["scale"] or "fp16")
    return Format(
        name=f"{found['sign']}int{bits}/{group}:{scale.name}",
        title=f"INT{bits} weights by groups of {group}, 16-bit activations",
        kind="integer",
        element=get_element("bipolar1" if bits == 1 else f"{found['sign']}int{bits}"),
        scaling=Scaling(levels=(Level(share=(1, group), scale=scale),)),
        rates=("bf16", "fp16"),
        weight_only=True,
        source="weight-only quantisation by groups, as in AWQ, arXiv:2306.00978",
    )

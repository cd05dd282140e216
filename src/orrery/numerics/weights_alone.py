"""Weights of 1 to 8 bits beside 16-bit activations, as people spell them: ``int5/128:fp16``, ``bipolar2``."""

import re
from functools import lru_cache

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

_SPELLED = re.compile(r"(?P<kind>u?int|bipolar)(?P<bits>[1-8])(?:/(?P<group>[1-9]\d{0,5})(?::(?P<scale>fp16|bf16))?)?")


@lru_cache(maxsize=1024)
def weights_alone(name: str) -> Format | None:
    """The format that ``name`` spells out; None where it spells none. One bit is a sign; bipolar weights without a
    group have one scale a row, which is not counted.

    >>> weights_alone("int5/128:fp16").bits_per_element, weights_alone("bipolar2").bits_per_element
    (5.125, 2)
    """
    found = _SPELLED.fullmatch(name.strip().casefold())
    if found is None or (found["kind"] != "bipolar" and not found["group"]):
        return None
    kind, bits, group = found["kind"], int(found["bits"]), int(found["group"] or 0)
    scale = get_element(found["scale"] or "fp16")
    element = "bipolar1" if bits == 1 else f"{kind}{bits}"
    return Format(
        name=f"{kind}{bits}/{group}:{scale.name}" if group else f"{kind}{bits}",
        title=f"{element.upper()} weights by {f'groups of {group}' if group else 'rows'}, 16-bit activations",
        kind="integer",
        element=get_element(element),
        scaling=Scaling(levels=(Level(share=(1, group), scale=scale),)) if group else Scaling(),
        rates=("bf16", "fp16"),
        weight_only=True,
        source="weight-only quantisation by groups, as in AWQ, arXiv:2306.00978",
    )

"""Activations whose channel blocks have four or eight bits, beside four-bit weights: ``int4+int8``."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling, read_share

MIXED_WIDTHS = "int4+int8"
"""Format of activations: most channel blocks have four bits, those with outliers eight."""

WEIGHTS = "int4_weight_only"
"""Format of the weights that such activations multiply."""

MIXED_PRODUCT = f"int4_{MIXED_WIDTHS}"
"""Format of the products of both."""

_SOURCE = "COMET, arXiv:2410.12168"
_ACTIVATIONS = Format(
    name=MIXED_WIDTHS,
    title="activations of four bits, of eight in channel blocks with outliers",
    kind="mixed",
    stored_bits=8.0,
    rates=("int8",),
    source=_SOURCE,
)


def mixed_widths(name: str) -> Format | None:
    """The format of the activations, or of their products with four-bit weights; None for other names."""
    if name == MIXED_WIDTHS:
        return _ACTIVATIONS
    if name != MIXED_PRODUCT:
        return None
    return Format(
        name=name,
        title="four-bit weights beside activations of four and eight bits",
        kind="mixed",
        element=get_element("int4"),
        scaling=Scaling(levels=(Level(share=read_share("128", name), scale=get_element("fp16")),)),
        rates=("int8",),
        source=_SOURCE,
    )

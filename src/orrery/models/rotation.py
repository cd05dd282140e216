"""Rotary position embedding: the base of its angles, and how they were stretched."""

from dataclasses import dataclass
from math import log

from orrery.models.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """Rotary positions [su-2021] as a config.json states them. Pairs of elements turn by base^(-2 i / size) a token."""

    base: float  # rope_theta
    kind: str = ""  # "llama3", "yarn", "linear", … ; "" = angles as they were trained
    stretch_ratio: float = 1.0  # how much longer sequences became
    share: float = 1.0  # of a head's elements that turn
    magnitude_ratio: float = 1.0  # of a turned vector over the vector


def rotation_of(c: Fields) -> Rotation | None:
    """Rotation of a config; None where it names no base, which is then not known."""
    scaling = c.table("rope_scaling") or c.table("rope_parameters")
    base = c.number("rope_theta", "rotary_emb_base", default=0.0)
    if not base and scaling is not None:
        base = scaling.number("rope_theta", default=0.0)
    if not base:
        return None
    share = c.number("partial_rotary_factor", "rotary_pct", default=1.0)
    if scaling is None:
        return Rotation(base=base, share=share)
    kind = scaling.word("rope_type", "type", default="")
    return Rotation(
        base=base,
        kind="" if kind in ("default", "none", "mrope") else kind,
        share=share,
        stretch_ratio=scaling.number("factor", default=1.0),
        magnitude_ratio=_magnitude(scaling, kind),
    )


def _magnitude(scaling: Fields, kind: str) -> float:
    """YaRN makes turned vectors longer by 0.1 ln(stretch) + 1, or as far as two such factors differ. [peng-2023]"""
    if kind != "yarn":
        return 1.0
    if stated := scaling.number("attention_factor", default=0.0):
        return stated
    stretch = max(scaling.number("factor", default=1.0), 1.0)
    above, below = (scaling.number(name, default=0.0) for name in ("mscale", "mscale_all_dim"))
    if above and below:
        return (0.1 * above * log(stretch) + 1.0) / (0.1 * below * log(stretch) + 1.0)
    return 0.1 * log(stretch) + 1.0

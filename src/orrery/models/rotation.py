"""How a model turns queries and keys by their positions: the base of its angles, and how they were stretched."""

from dataclasses import dataclass

from orrery.models.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """Rotary positions [su-2021] as a config.json states them. Pairs of elements turn by base^(-2 i / size) a token."""

    base: float  # rope_theta
    kind: str = ""  # "llama3", "yarn", "linear", … ; "" = angles as they were trained
    stretch_ratio: float = 1.0  # how much longer sequences became
    share: float = 1.0  # of a head's elements that turn


def rotation_of(c: Fields) -> Rotation | None:
    """What a config says; None where it names no base, which is then not known."""
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
        base=base, kind="" if kind in ("default", "none", "mrope") else kind, share=share,
        stretch_ratio=scaling.number("factor", default=1.0),
    )  # fmt: skip

"""Unequal cuts of a mixture: attention over some devices, every expert over others."""

from orrery.base.errors import ScenarioError
from orrery.models.model import Model
from orrery.scenario.schema import Scenario

ANY = "any"
"""In a plan: unequal cuts are tried beside the equal ones."""


def cut_of(scenario: Scenario, model: Model) -> tuple[int, int] | None:
    """Devices of one attention, and of one expert; None where nothing, or any cut, is asked for."""
    if scenario.cut is None:
        return None
    if not any(b.experts for b in model.blocks):
        raise ScenarioError(
            f"cut: {model.name} has no experts; attention and feed-forward parts of a dense model are cut alike. Leave "
            "cut out, and write tp."
        )
    if scenario.cut == ANY:
        return None
    pairs = (one.partition("=") for one in scenario.cut.replace(" ", "").split(","))
    given = {name: number for name, _, number in pairs}
    try:
        attention, ffn = int(given.pop("attention")), int(given.pop("ffn"))
    except (KeyError, ValueError):
        attention = ffn = 0
    if given or attention < 1 or ffn < 1 or max(attention, ffn) % min(attention, ffn):
        raise ScenarioError(
            f"cut: got {scenario.cut!r}; write attention=A,ffn=F, one a multiple of the other, such as "
            "attention=2,ffn=8."
        )
    for name in ("tp", "ep", "etp"):
        if getattr(scenario, name) is not None:
            raise ScenarioError(f"cut and {name} exclude each other; keep one.")
    return attention, ffn


def degrees_of(cut: tuple[int, int]) -> dict[str, int]:
    """The layout's degrees for such a cut, on as few devices as it takes."""
    attention, ffn = cut
    whole = max(cut)
    return {"tp": attention, "dp": whole // attention, "ep": whole // ffn, "etp": ffn}

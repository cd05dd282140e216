"""Rotations and wide features of products of few bits, as a scenario states them."""

from orrery.base.errors import ScenarioError
from orrery.execution.formats import is_16bit
from orrery.execution.layout import OnlineRotation
from orrery.models.model import Model
from orrery.numerics.registry import get_format
from orrery.numerics.rotations.hadamard import has_matrix
from orrery.scenario.schema import Scenario

FOLDED, WIDE = "folded", "bf16"


def online_rotation_of(scenario: Scenario, weights: tuple[str, ...]) -> OnlineRotation | None:
    """The rotation that is asked for; refused where no product is narrow."""
    if (word := scenario.online_rotation) is None:
        return None
    _check_narrow("online_rotation", weights)
    if word == FOLDED:
        return OnlineRotation()
    if not word.isdecimal() or int(word) < 2 or not has_matrix(int(word)):
        raise ScenarioError(
            f"online_rotation: got {word!r}; write features of a block that a Hadamard matrix is known for, such as "
            "32, or folded."
        )
    return OnlineRotation(block_features=int(word))


def wide_frac_of(scenario: Scenario, weights: tuple[str, ...], model: Model) -> float:
    """Share of the features that stay in 16 bits; refused where no product is narrow, and for experts."""
    if not scenario.wide_frac:
        return 0.0
    _check_narrow("wide_frac", weights)
    if any(b.experts for b in model.blocks):
        raise ScenarioError(f"wide_frac: the experts of {model.name} run in one format; leave wide_frac out.")
    return scenario.wide_frac


def wide_format_of(scenario: Scenario, weights: tuple[str, ...]) -> str:
    """The format of the features that stay wide; refused where none do, or where it is that of all others."""
    if scenario.wide_format is None:
        return WIDE
    if not scenario.wide_frac:
        raise ScenarioError("wide_format: no features are wide; write wide_frac = 0.01 beside it.")
    found = get_format(scenario.wide_format).name
    if found in weights:
        raise ScenarioError(f"wide_format: got {found}, the format of the weights; write a wider one, such as {WIDE}.")
    return found


def _check_narrow(name: str, weights: tuple[str, ...]) -> None:
    if all(map(is_16bit, weights)):
        raise ScenarioError(
            f'{name}: no product is narrow in {", ".join(weights)}; write weights = "fp8", or narrower.'
        )

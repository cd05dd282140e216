"""Rotations and wide features of products of few bits, as a scenario states them."""

from collections.abc import Sequence

from orrery.base.errors import ScenarioError
from orrery.execution.formats import is_16bit
from orrery.execution.layout import OnlineRotation
from orrery.hardware.device import Device
from orrery.kernels.lowbit.mixed_served import has_units
from orrery.models.model import Model
from orrery.numerics.mixed_widths import MIXED_WIDTHS, WEIGHTS
from orrery.numerics.registry import get_format
from orrery.numerics.rotations.hadamard import has_matrix
from orrery.scenario.schema import Scenario

FOLDED, WIDE = "folded", "bf16"

MIXED_NOTE = (
    f"activations: dense products run in channel blocks of four and of eight bits ({MIXED_WIDTHS}), tiles of both "
    "dealt out evenly (COMET, arXiv 2410.12168); no engine was measured with them, and what is lost in quality must be "
    "measured"
)


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


def mixes_widths(scenario: Scenario) -> bool:
    """Whether activations have blocks of four and of eight bits."""
    return bool(scenario.activations) and get_format(scenario.activations).name == MIXED_WIDTHS


def check_stored(scenario: Scenario) -> None:
    """Refuse blocks of two widths for what is stored: they are of activations."""
    for name in ("weights", "kv"):
        if any(get_format(word).name == MIXED_WIDTHS for word in (getattr(scenario, name) or "").split(",") if word):
            raise ScenarioError(f'{name}: {MIXED_WIDTHS} is of activations alone; write {name} = "int4".')


def check_mixed_widths(scenario: Scenario, weights: tuple[str, ...], model: Model, devices: Sequence[Device]) -> None:
    """Refuse blocks of two widths where no kernel multiplies them, or their share is not said."""
    if bad := next((name for name in weights if get_format(name).name != WEIGHTS), ""):
        raise ScenarioError(f'activations: {MIXED_WIDTHS} meet four-bit weights, not {bad}; write weights = "int4".')
    if bad := next((device.name for device in devices if not has_units(device)), ""):
        raise ScenarioError(
            f"activations: {MIXED_WIDTHS} runs on integer units of both widths, and none of {bad} are known; leave "
            "activations out, and weights are unpacked beside 16 bits."
        )
    if any(b.experts for b in model.blocks):
        raise ScenarioError(f"activations: the experts of {model.name} run in one format; write int4 or int8.")
    if scenario.wide_frac is None:
        raise ScenarioError(
            f"wide_frac: is missing, and {MIXED_WIDTHS} does not say how many channel blocks keep eight bits; write "
            "wide_frac = 0.1, or what orrery quantize --wide-above measures."
        )
    if scenario.wide_format is not None:
        raise ScenarioError(f"wide_format: wide blocks of {MIXED_WIDTHS} have eight bits; leave wide_format out.")


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

"""Memory that learning a model's rotations needs on a device, for the recipes of ``orrery quantize`` that learn one."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.rotation_memory import RotationMemory, devices_end_to_end, end_to_end, layer_wise

LEARNS = "kurtail"
CALIBRATION_TOKENS, SEQUENCE_TOKENS = 512 * 2048, 2048
"""Calibration where nobody says more: 512 sequences of 2,048 tokens, one a device where it goes end to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationFit:
    """Bytes of a device, layer by layer and end to end, and the devices that each way needs."""

    model: str
    device: str
    layer_wise_bytes: float
    layer_wise_devices: int
    end_to_end_bytes: float  # on each device, of as many as it needs
    end_to_end_devices: int | None  # None: a node does not hold it


def rotation_fit(
    model: str | None,
    device: str | None,
    calibration_tokens: int | None,
    sequence_tokens: int | None,
    recipes: Sequence[Sequence[str]],
) -> RotationFit | None:
    """The memory of the model that is named; None where none is, and a refusal of settings without it."""
    others = {"device": device, "calibration_tokens": calibration_tokens, "sequence_tokens": sequence_tokens}
    if model is None:
        if given := [name for name, value in others.items() if value is not None]:
            raise ScenarioError(f"{', '.join(given)}: no effect without a model; write model and device beside it.")
        return None
    if device is None:
        raise ScenarioError('device: missing; write the device that learns, such as device = "h100-sxm".')
    if not any(LEARNS in recipe for recipe in recipes):
        raise ScenarioError(f'model: serves recipes that learn a rotation; write recipes = "{LEARNS}" beside it.')
    known, on = get_model(model), get_device(device)
    have, tokens = on.memory_capacity_bytes, sequence_tokens or SEQUENCE_TOKENS
    alone = layer_wise(known, calibration_tokens or CALIBRATION_TOKENS).total_bytes
    try:
        count: int | None = devices_end_to_end(known, tokens, have, on.devices_per_node)
    except OutOfRange:
        count = None
    whole: RotationMemory = end_to_end(known, tokens, count or on.devices_per_node)
    return RotationFit(
        model=known.name,
        device=on.name,
        layer_wise_bytes=alone,
        layer_wise_devices=ceil(alone / have),
        end_to_end_bytes=whole.total_bytes,
        end_to_end_devices=count,
    )

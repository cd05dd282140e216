"""Weights in the memory of a peer or the host, as a scenario states them."""

from typing import cast, get_args

from orrery.base.errors import ScenarioError
from orrery.base.units import text
from orrery.execution.layout import Deployment, Place, WeightOffload
from orrery.execution.weight_offload import BUFFERED_LAYERS, elsewhere_bytes, fetches_s, num_elsewhere
from orrery.hardware.device import Device
from orrery.scenario.schema import Scenario

WEIGHT_OFFLOAD = ("weight_offload", "weight_offload_frac")
"""Settings of layers in another memory."""


def weight_offload_of(scenario: Scenario, device: Device) -> WeightOffload | None:
    """Where the weights of which layers lie; None where all are on the devices."""
    where, frac = scenario.weight_offload, scenario.weight_offload_frac
    if where is None:
        if frac is not None:
            raise ScenarioError('weight_offload_frac: all weights are on the devices; write weight_offload = "peer".')
        return None
    if where not in get_args(Place):
        raise ScenarioError(f"weight_offload: got {where!r}; write one of {', '.join(get_args(Place))}.")
    if frac is None:
        raise ScenarioError("weight_offload: says where, not how much; write weight_offload_frac = 0.25 beside it.")
    if where == "peer" and device.devices_per_node < 2:
        raise ScenarioError(f"weight_offload: {device.name} has no peer in its node; write host.")
    return WeightOffload(where=cast(Place, where), layers_frac=frac)


def weight_offload_note(deployment: Deployment) -> str:
    """Share of a pass that fetches take, and the memory that they spare; blank where all weights are on the devices."""
    if (rule := deployment.weight_offload) is None:
        return ""
    count, spared = num_elsewhere(deployment), elsewhere_bytes(deployment)
    found = (
        f"weight_offload: {count} layers of a stage from the {rule.where}: a pass takes "
        f"{text(fetches_s(deployment), 's')} at least, and a device spares {text(spared, 'bytes')} ({BUFFERED_LAYERS} "
        "layers are buffered)"
    )
    return found + ("; the peer's memory is not among the devices that are paid for" if rule.where == "peer" else "")

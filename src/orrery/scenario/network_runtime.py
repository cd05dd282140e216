"""Runtime of an image network or a recommendation model: the one asked for, or TensorRT."""

from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog.network_runtimes import DEFAULT, NetworkRuntime, get_network_runtime
from orrery.hardware.device import Device
from orrery.scenario.schema import Scenario


def runtime_of(scenario: Scenario, device: Device) -> NetworkRuntime:
    """Return the runtime, or say which are known."""
    try:
        found = get_network_runtime(scenario.engine or DEFAULT, device)
    except UnknownName as error:
        raise ScenarioError(f"engine: {error}") from None
    if scenario.integer_only and not found.fuses:
        raise ScenarioError(
            f'integer_only: {found.title} puts floats between products; leave it out, or write engine = "{DEFAULT}".'
        )
    return found

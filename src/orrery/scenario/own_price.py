"""Own prices of devices: one for all of them, or one by name."""

from collections.abc import Mapping
from math import isfinite

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.scenario.schema import Scenario

MAX_USD = 1e8


def own_usd_per_hour(scenario: Scenario, device: str) -> float | None:
    """Price that the user gives for one device of that name for one hour; None where the catalogue's counts."""
    return by_device(scenario.device_usd_per_hour).get(device, scenario.usd_per_hour)


def by_device(
    text: str | None, setting: str = "device_usd_per_hour", example: str = "h100-sxm=4.75,l4=0.7"
) -> Mapping[str, float]:
    """Prices of ``a100-sxm-80gb=2.2,h100-sxm=4.75`` by the catalogue's names."""
    found: dict[str, float] = {}
    for word in text.replace(",", " ").split() if text else ():
        name, _, price = word.partition("=")
        try:
            usd = float(price)
        except ValueError:
            usd = -1.0
        if not name or not isfinite(usd) or not 0.0 <= usd <= MAX_USD:
            raise ScenarioError(f"{setting}: got {word!r}; write DEVICE=USD, such as {example}.")
        found[get_device(name).name] = usd
    return found

"""Devices of one's own: their price spread over their life, with upkeep and, where it is asked, their electricity."""

from collections.abc import Collection, Mapping

from orrery.base.errors import ScenarioError
from orrery.catalog.prices import electricity
from orrery.fleet.money import S_PER_MONTH
from orrery.fleet.ownership import Terms
from orrery.planner.money import J_PER_KWH
from orrery.scenario.own_price import by_device
from orrery.scenario.schema import Scenario

LIFE_MONTHS, UPKEEP_FRAC = 48, 0.2
"""Taken where nobody says: four years, a fifth of the price for repairs and support."""


def bought(scenario: Scenario) -> Mapping[str, float]:
    """Dollars of one device, by the catalogue's names."""
    return by_device(scenario.device_buy_usd, "device_buy_usd", "h100-sxm=35000,l4=2500")


def ownership_terms(scenario: Scenario) -> Terms:
    """Life, upkeep and the site's power of what is owned; what nobody says is the usual."""
    usual, per_kwh = electricity(), scenario.electricity
    return Terms(
        life_s=(scenario.life_months or LIFE_MONTHS) * S_PER_MONTH,
        upkeep_frac=UPKEEP_FRAC if scenario.upkeep_frac is None else scenario.upkeep_frac,
        cooling_ratio=scenario.pue or usual.pue_ratio,
        electricity_usd_per_j=usual.usd_per_j if per_kwh is None else per_kwh / J_PER_KWH,
    )


def ownership_note(scenario: Scenario) -> str:
    """Terms that are taken where nobody says, as one note."""
    usual = electricity()
    given = (
        ("life_months", scenario.life_months, f"{LIFE_MONTHS}"),
        ("upkeep_frac", scenario.upkeep_frac, f"{UPKEEP_FRAC:g}"),
        ("pue", scenario.pue, f"{usual.pue_ratio:g}"),
        ("electricity", scenario.electricity, f"{usual.usd_per_j * J_PER_KWH:.3g} $/kWh"),
    )
    taken = ", ".join(f"{name} {text}" for name, value, text in given if value is None)
    return f"owned: {taken} (nobody says)" if taken else "owned: every term is given"


def check_ownership(scenario: Scenario, names: Collection[str]) -> None:
    """Refuse prices of devices that nobody owns here, and terms of owning where nothing has such a price."""
    prices = bought(scenario)
    for name in prices:
        if name not in names:
            known = f"those are {', '.join(names)}" if names else 'write purchase = "owned" for its pool'
            raise ScenarioError(f"device_buy_usd: {name} is no device that is owned here; {known}.")
    for term in ("life_months", "upkeep_frac"):
        if not prices and getattr(scenario, term) is not None:
            raise ScenarioError(f'{term}: nothing is bought; write device_buy_usd = "h100-sxm=35000" beside it.')

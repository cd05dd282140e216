"""Ways to pay for a plan: rent, spot, own, or an API, month by month, and the utilisation from which machines pay."""

from dataclasses import dataclass
from math import isfinite
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.catalog.api_prices import get_api_price
from orrery.catalog.prices import electricity
from orrery.fleet.money import (
    TOKENS_PER_MILLION,
    ApiPrice,
    Demand,
    Machines,
    Terms,
    Way,
    compare,
    first_month_cheaper,
)
from orrery.planner.money import J_PER_KWH, S_PER_HOUR, Tariff
from orrery.planner.plan import Plan
from orrery.scenario.answer import to_json
from orrery.scenario.fields_money import MONEY_SETTINGS
from orrery.scenario.ownership import LIFE_MONTHS, UPKEEP_FRAC
from orrery.scenario.schema import Scenario
from orrery.scenario.schema_money import api_amounts

MONTHS = 36
"""Taken where nobody says: three years to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """The best plan's ways to pay, the cheapest month first."""

    ways: tuple[Way, ...]
    used_frac: float  # of what the machines sustain, over the whole month
    num_devices: int
    notes: tuple[str, ...]

    def way(self, name: str) -> Way | None:
        """Return a way by name; None where it has no price."""
        return next((way for way in self.ways if way.name == name), None)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the conclusions, as text."""
        found: list[str] = []
        own, rent, api = map(self.way, ("own", "rent", "api"))
        for way in (rent, own, self.way("spot")):
            if way and api:
                found.append(f"{way.name}: {_break_even(way)}; it is used {percent(self.used_frac)}.")
        for other in (rent, api):
            if own and other:
                if month := first_month_cheaper(own, other):
                    found.append(f"own has cost less than {other.name} in all from month {month}.")
                else:
                    found.append(f"own has not cost less than {other.name} in all within {len(own.cash_usd)} months.")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data; what is never reached is null."""
        return to_json(
            {"ways": self.ways, "used_frac": self.used_frac, "num_devices": self.num_devices}
            | {"sentences": self.sentences, "notes": self.notes}
        )


def _break_even(way: Way) -> str:
    if not isfinite(way.break_even_frac) or way.break_even_frac > 1.0:
        return "the API costs less at any load that these machines sustain"
    return f"the API costs more from {percent(way.break_even_frac)} utilisation"


def is_money_asked(scenario: Scenario) -> bool:
    """Whether a scenario compares ways to pay."""
    others = ("spare_frac", "max_usd_per_hour", "power_budget_w", "power_cap", "device_buy_usd")
    return any(getattr(scenario, s.name) is not None for s in MONEY_SETTINGS if s.name not in others)


def money_of(scenario: Scenario, plan: Plan, tariff: Tariff) -> Money:
    """Compare the ways to pay for a plan's traffic. ScenarioError where the traffic has no rate or nothing a price."""
    inputs = plan.operation
    if not inputs.requests_per_s or (scenario.rate is None and scenario.trace is None and scenario.users is None):
        raise ScenarioError("api_price: without a rate there is no month to compare; write rate, users or trace.")
    device = inputs.deployment.cluster.device
    api, api_notes = api_price_of(scenario.api_price)
    joules = electricity()
    per_kwh = scenario.electricity
    tokens = plan.total_tokens_per_s - plan.output_tokens_per_s
    demand = Demand(
        requests_per_s=inputs.requests_per_s,
        input_tokens=tokens / inputs.requests_per_s,
        output_tokens=plan.output_tokens_per_s / inputs.requests_per_s,
        cached_frac=scenario.cached_frac or 0.0,
        busy_frac=scenario.busy_frac or 1.0,
    )
    used = inputs.requests_per_s / inputs.highest_requests_per_s
    machines = Machines(
        num_devices=inputs.num_devices,
        power_w=plan.power_w + plan.host_power_w,
        idle_power_w=inputs.num_devices * (device.idle_power_w + device.host_power_w),
        used_frac=used,
    )
    hourly, spot = tariff.usd_per_hour, scenario.spot_usd_per_hour
    terms = Terms(
        rent_usd_per_s=None if hourly is None else hourly / S_PER_HOUR,
        spot_usd_per_s=None if spot is None else spot / S_PER_HOUR,
        device_usd=scenario.buy_usd,
        life_months=scenario.life_months or LIFE_MONTHS,
        upkeep_frac=UPKEEP_FRAC if scenario.upkeep_frac is None else scenario.upkeep_frac,
        people_usd=scenario.people_usd_per_month or 0.0,
        electricity_usd_per_j=joules.usd_per_j if per_kwh is None else per_kwh / J_PER_KWH,
        pue_ratio=scenario.pue or joules.pue_ratio,
        is_power_in_rent=per_kwh is None,
    )
    ways = compare(demand, machines, terms, api, scenario.months or MONTHS)
    if not ways:
        raise ScenarioError(
            "api_price: nothing has a price; write api_price, buy_usd, spot_usd_per_hour or usd_per_hour."
        )
    return Money(
        ways=ways,
        used_frac=used * demand.busy_frac,
        num_devices=inputs.num_devices,
        notes=(*api_notes, *_notes(scenario, terms)),
    )


def api_price_of(text: str | None) -> tuple[ApiPrice | None, tuple[str, ...]]:
    """Return the price that a name or dollars a million tokens say, and its facts; None where nothing is said."""
    if text is None:
        return None, ()
    if "=" not in text:
        found = get_api_price(text)
        facts = "; ".join(f"{f.name.removesuffix('_million_usd')} ${f.value:g}" for f in found.facts)
        return found.price, (f"api_price: {found.name}, a million tokens: {facts} ({found.as_of})",)
    amounts = {kind: usd / TOKENS_PER_MILLION for kind, usd in api_amounts(text).items()}
    price = ApiPrice(
        input_usd_per_tokens=amounts["in"],
        output_usd_per_tokens=amounts["out"],
        cached_usd_per_tokens=amounts.get("cached", amounts["in"]),
    )
    return price, ()


def _notes(scenario: Scenario, terms: Terms) -> tuple[str, ...]:
    """Defaults taken for unstated settings."""
    notes: list[str] = []
    if scenario.buy_usd is not None:
        if scenario.life_months is None:
            notes.append(f"life_months: {LIFE_MONTHS} (assumed)")
        if scenario.upkeep_frac is None:
            notes.append(f"upkeep_frac: {UPKEEP_FRAC:g} (assumed)")
        kwh = terms.electricity_usd_per_j * J_PER_KWH
        notes.append(f"own machines draw at ${kwh:.3g}/kWh and a PUE of {terms.pue_ratio:.3g}")
    else:
        notes += [
            f"{n}: not used; write buy_usd" for n in ("life_months", "upkeep_frac") if getattr(scenario, n) is not None
        ]
    if scenario.api_price is None and scenario.cached_frac is not None:
        notes.append("cached_frac: not used; write api_price")
    if scenario.spot_usd_per_hour is not None:
        notes.append("spot: devices are taken to stay; what an interruption costs is not in the price")
    if scenario.pue is not None and scenario.buy_usd is None and scenario.electricity is None:
        notes.append("pue: not used; a rent includes electricity")
    if scenario.people_usd_per_month is None:
        notes.append("people_usd_per_month: 0 (nobody is paid for running machines)")
    return tuple(notes)

"""The same traffic by four ways of paying: rented devices, spot devices, devices of one's own, and a public API.

A month is 365 / 12 days. Machines are paid in every hour, used or not; an API only for tokens:

    fixed    = devices x (rent x hours, or price (1 + upkeep) / months of life) + people
    used     = watts at full load x share of the full rate x PUE x hours x price of electricity
    API      = tokens x price of input, cached input and output
    fixed + u x used = u x API   gives the utilisation u at which both cost the same
"""

from dataclasses import dataclass
from math import inf

TOKENS_PER_MILLION = 1e6
S_PER_MONTH = 365.0 / 12.0 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPrice:
    """Dollars for one token of each kind."""

    input_usd_per_tokens: float
    output_usd_per_tokens: float
    cached_usd_per_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Traffic while there is any, and the share of time that there is."""

    requests_per_s: float
    input_tokens: float  # of a request
    output_tokens: float
    cached_frac: float  # of input tokens, billed as cached by an API
    busy_frac: float

    def api_usd_per_s(self, price: ApiPrice) -> float:
        """Return what an API charges for a second of this traffic while it runs."""
        fresh, cached = self.input_tokens * (1.0 - self.cached_frac), self.input_tokens * self.cached_frac
        each = (
            fresh * price.input_usd_per_tokens
            + cached * price.cached_usd_per_tokens
            + self.output_tokens * price.output_usd_per_tokens
        )
        return self.requests_per_s * each


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Devices that serve the demand: how many, what they draw, and how much of what they sustain is asked for."""

    num_devices: int
    power_w: float  # of all, devices and hosts, at the demand's rate
    idle_power_w: float  # of all, without any request
    used_frac: float  # the demand's rate over the highest that they sustain


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Costs beside tokens; a device's price of None leaves that way of paying out."""

    rent_usd_per_s: float | None  # one device
    spot_usd_per_s: float | None
    device_usd: float | None  # bought, with its part of a machine
    life_months: int
    upkeep_frac: float  # of the price, over its life
    people_usd: float  # a month, for machines; an API needs none
    electricity_usd_per_j: float
    pue_ratio: float
    is_power_in_rent: bool  # a cloud's price includes electricity


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way of paying: a month of it, cash over months, and the utilisation from which an API costs more."""

    name: str
    month_usd: float  # with a purchase spread over its life
    fixed_usd: float  # of that, independent of traffic
    cash_usd: tuple[float, ...]  # paid until the end of each month
    million_output_usd: float
    break_even_frac: float  # of what the machines sustain; infinite where an API is always cheaper


def compare(demand: Demand, machines: Machines, terms: Terms, api: ApiPrice | None, months: int) -> tuple[Way, ...]:
    """Return every way of paying that has a price, the cheapest month first."""
    ways = [
        way
        for name, usd_per_s in (("rent", terms.rent_usd_per_s), ("spot", terms.spot_usd_per_s))
        if usd_per_s is not None
        for way in (_machines(name, demand, machines, terms, api, months, usd_per_s),)
    ]
    if terms.device_usd is not None:
        ways.append(_machines("own", demand, machines, terms, api, months, None))
    if api is not None:
        month = demand.api_usd_per_s(api) * S_PER_MONTH * demand.busy_frac
        ways.append(
            Way(
                name="api",
                month_usd=month,
                fixed_usd=0.0,
                cash_usd=tuple(month * (m + 1) for m in range(months)),
                million_output_usd=_per_million(month, demand),
                break_even_frac=0.0,
            )
        )
    return tuple(sorted(ways, key=lambda way: way.month_usd))


def first_month_cheaper(way: Way, other: Way) -> int | None:
    """Return the first month, from 1, by whose end less was paid in all than the other way; None within the months."""
    pairs = zip(way.cash_usd, other.cash_usd, strict=True)
    return next((month for month, (mine, theirs) in enumerate(pairs, 1) if mine < theirs), None)


def _machines(
    name: str,
    demand: Demand,
    machines: Machines,
    terms: Terms,
    api: ApiPrice | None,
    months: int,
    usd_per_s: float | None,
) -> Way:
    """Rented devices, or bought ones without ``usd_per_s``."""
    is_own = usd_per_s is None
    price = (terms.device_usd or 0.0) * machines.num_devices
    capital = price * (1.0 + terms.upkeep_frac) / terms.life_months
    upkeep = price * terms.upkeep_frac / terms.life_months
    rent = capital if is_own else usd_per_s * machines.num_devices * S_PER_MONTH
    joule_usd = terms.electricity_usd_per_j * terms.pue_ratio * S_PER_MONTH
    if not is_own and terms.is_power_in_rent:
        joule_usd = 0.0
    idle = machines.idle_power_w * joule_usd
    above = (machines.power_w - machines.idle_power_w) * joule_usd * demand.busy_frac
    fixed = rent + idle + terms.people_usd
    month = fixed + above
    monthly_cash = month - capital + upkeep if is_own else month
    bought = [price * (1 + m // terms.life_months) if is_own else 0.0 for m in range(months)]
    return Way(
        name=name,
        month_usd=month,
        fixed_usd=fixed,
        cash_usd=tuple(bought[m] + monthly_cash * (m + 1) for m in range(months)),
        million_output_usd=_per_million(month, demand),
        break_even_frac=_break_even(fixed, above, demand, machines, api),
    )


def _break_even(fixed: float, above: float, demand: Demand, machines: Machines, api: ApiPrice | None) -> float:
    """The share of the highest rate, over the whole month, at which an API costs as much as the machines."""
    if api is None or demand.busy_frac <= 0.0 or demand.requests_per_s <= 0.0:
        return inf
    at_full = 1.0 / machines.used_frac
    api_month = demand.api_usd_per_s(api) * S_PER_MONTH * at_full
    gain = api_month - above / demand.busy_frac * at_full
    return fixed / gain if gain > 0.0 else inf


def _per_million(month_usd: float, demand: Demand) -> float:
    tokens = demand.requests_per_s * demand.output_tokens * S_PER_MONTH * demand.busy_frac
    return month_usd / tokens * TOKENS_PER_MILLION if tokens > 0.0 else inf

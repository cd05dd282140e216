"""Cost of owning machines: their price spread over their life, upkeep, and the electricity they draw with cooling.

usd/s = price (1 + upkeep) / life + watts x cooling x usd/J
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Costs of a site, whatever machine stands in it."""

    life_s: float
    upkeep_frac: float  # of a machine's price, over its whole life
    cooling_ratio: float  # what the site draws for each watt of a machine
    electricity_usd_per_j: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """One kind of machine, or one device with its part of a machine."""

    name: str
    price_usd: float
    power_w: float

    def usd_per_s(self, terms: Terms) -> float:
        """Price, upkeep and electricity."""
        capital = self.price_usd * (1.0 + terms.upkeep_frac) / terms.life_s
        return capital + self.power_w * terms.cooling_ratio * terms.electricity_usd_per_j

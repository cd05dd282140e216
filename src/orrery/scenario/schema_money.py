"""The part of a scenario that is about ways to pay."""

from pydantic import field_validator

from orrery.scenario.fields import BY_NAME
from orrery.scenario.kinds import Count, Number, Settings, Word


class MoneyScenario(Settings, table=BY_NAME):
    """An API's price, a purchase, and what is paid beside machines; blank means: not compared, or the default."""

    api_price: Word = None
    cached_frac: Number = None
    busy_frac: Number = None
    buy_usd: Number = None
    device_buy_usd: Word = None
    life_months: Count = None
    upkeep_frac: Number = None
    people_usd_per_month: Number = None
    spot_usd_per_hour: Number = None
    pue: Number = None
    spare_frac: Number = None
    max_usd_per_hour: Number = None
    power_budget_w: Number = None
    power_cap: Word = None
    months: Count = None

    @field_validator("api_price")
    @classmethod
    def _api_price_reads(cls, value: str | None) -> str | None:
        if value is not None and "=" in value:
            api_amounts(value)
        return value


def api_amounts(text: str) -> dict[str, float]:
    """Dollars a million tokens by kind, from ``in=0.6,out=2.4,cached=0.1``. ValueError says what to write."""
    message = f"got {text!r}; write in=0.6,out=2.4 (dollars a million tokens), and cached=0.1 where it is cheaper"
    found: dict[str, float] = {}
    for word in text.replace(" ", "").split(","):
        kind, _, amount = word.partition("=")
        try:
            found[kind] = float(amount)
        except ValueError:
            raise ValueError(message) from None
    if not {"in", "out"} <= found.keys() <= {"in", "out", "cached"} or not all(0.0 <= v < 1e9 for v in found.values()):
        raise ValueError(message)
    return found

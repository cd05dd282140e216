"""Money of a report's first page: the bill, the API alternative, and the cost of a token over utilization."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.catalog.api_prices import PublishedPrice, api_prices_of
from orrery.drawing import Axis, Series, lines
from orrery.fleet.money import Way
from orrery.reports.report import Figure, Section, Table
from orrery.reports.words import format_value
from orrery.scenario.money import Money

HOURS_PER_MONTH, S_PER_HOUR, MILLION = 730.0, 3600.0, 1e6
MIN_FRAC, NUM_POINTS = 0.1, 37
"""Where the curve begins, and the number of its points."""

NAMES = {"rent": "rented", "own": "owned", "spot": "spot", "api": "API"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Machines that are paid by the hour, the most output tokens that they make, and how much of it is used."""

    model: str
    usd_per_hour: float | None
    full_tokens_per_s: float  # output tokens at full use
    used_frac: float
    full: str  # what full use means: "the most within the SLOs"
    input_tokens: float  # of a request
    output_tokens: float

    @property
    def usd_per_million(self) -> float | None:
        """Dollars of a million output tokens at this utilization."""
        return None if self.usd_per_hour is None else self.at(self.used_frac)

    def at(self, used_frac: float) -> float:
        """Dollars of a million output tokens at another utilization: the hour costs the same."""
        return (self.usd_per_hour or 0.0) / S_PER_HOUR / (self.full_tokens_per_s * used_frac) * MILLION


def served_bill(plain: Mapping[str, Any], full: str) -> Bill | None:
    """The bill of a simulated run; None where it served nothing."""
    usd, rate = plain.get("usd_per_million_tokens"), plain["output_throughput"]
    if not rate or not plain["completed"]:
        return None
    return Bill(
        model=plain["model_id"],
        usd_per_hour=None if usd is None else usd / MILLION * rate * S_PER_HOUR,
        full_tokens_per_s=rate,
        used_frac=1.0,
        full=full,
        input_tokens=plain["total_input_tokens"] / plain["completed"],
        output_tokens=plain["total_output_tokens"] / plain["completed"],
    )


def money_section(bill: Bill | None, compared: Money | None = None) -> Section | None:
    """The section; None where neither the machines nor an API have a price."""
    if bill is None:
        return None
    api = _cheapest(bill) if compared is None or compared.way("api") is None else None
    if bill.usd_per_hour is None and api is None and compared is None:
        return None
    words = [*_hourly(bill), *_against(bill, api), *(_sentences(compared) if compared else ())]
    tables = (_ways(compared),) if compared else ()
    figure = _curve(bill, api, compared)
    return Section(heading="Money", summary=tuple(words), tables=tables, figures=(figure,) if figure else ())


def _cheapest(bill: Bill) -> PublishedPrice | None:
    return min(api_prices_of(bill.model), key=lambda p: _api_usd(bill, p), default=None)


def _api_usd(bill: Bill, price: PublishedPrice) -> float:
    return price.usd_per_million(bill.input_tokens, bill.output_tokens)


def _hourly(bill: Bill) -> list[str]:
    if bill.usd_per_hour is None:
        return ["No price of these machines is known: give one with --usd-per-hour."]
    month = format_value(HOURS_PER_MONTH * bill.usd_per_hour, "usd")
    used = f"at {format_value(bill.used_frac, 'frac')} utilization, " if bill.used_frac < 1.0 else ""
    return [
        f"{format_value(bill.usd_per_hour, 'usd')} an hour, {month} a month of 730 hours; {used}"
        f"{format_value(bill.usd_per_million, 'usd')} per million output tokens, prompts included."
    ]


def _against(bill: Bill, api: PublishedPrice | None) -> list[str]:
    """The cheapest published API price of the model, and the utilization from which it costs more."""
    if api is None:
        return []
    usd = _api_usd(bill, api)
    found = f"API alternative: {format_value(usd, 'usd')} per million output tokens with their prompts ({api.name}, "
    found += f"{api.as_of})"
    if bill.usd_per_hour is None:
        return [f"{found}."]
    even = bill.at(1.0) / usd
    if even > 1.0:
        return [f"{found}: it costs less at any load that these machines sustain."]
    return [f"{found}: it costs more from {format_value(even, 'frac')} utilization on."]


def _sentences(compared: Money) -> list[str]:
    return [f"{sentence[:1].upper()}{sentence[1:]}" for sentence in compared.sentences]


def _ways(compared: Money) -> Table:
    rows = tuple(
        (
            NAMES.get(way.name, way.name),
            format_value(way.month_usd, "usd"),
            format_value(way.fixed_usd, "usd"),
            format_value(way.million_output_usd, "usd"),
        )
        for way in compared.ways
    )
    columns = ("", "$ a month", "of it fixed", "$ per M output tokens")
    return Table(title="Ways to pay for this load", columns=columns, rows=rows)


def way_usd_at(way: Way, used_frac: float, at_frac: float) -> float:
    """Dollars of a million output tokens of a way to pay at another utilization than the one of its month."""
    share = at_frac / used_frac
    millions = way.month_usd / way.million_output_usd
    return (way.fixed_usd + (way.month_usd - way.fixed_usd) * share) / (millions * share)


def _curve(bill: Bill, api: PublishedPrice | None, compared: Money | None) -> Figure | None:
    if bill.usd_per_hour is None and compared is None:
        return None
    at = [MIN_FRAC + (1.0 - MIN_FRAC) * n / (NUM_POINTS - 1) for n in range(NUM_POINTS)]
    series = _series(bill, api, compared, at)
    x = Axis(f"utilization: share of {bill.full} (%)", low=0.0, high=100.0)
    mark = (100.0 * bill.used_frac, "this load") if bill.used_frac < 1.0 else None
    says = "Machines are paid in every hour, an API for tokens only."
    svg = lines(series, x, Axis("$ per M output tokens", low=0.0), title="Cost over utilization", mark=mark)
    return Figure(title="Cost over utilization", summary=says, svg=svg)


def _series(bill: Bill, api: PublishedPrice | None, compared: Money | None, at: Sequence[float]) -> list[Series]:
    x = [100.0 * share for share in at]
    if compared:
        curves = [(way.name, [way_usd_at(way, compared.used_frac, share) for share in at]) for way in compared.ways]
    else:
        curves = [("rent", [bill.at(share) for share in at])] if bill.usd_per_hour is not None else []
    if api:
        curves.append(("api", [_api_usd(bill, api)] * len(at)))
    return [Series(NAMES.get(name, name), x, y) for name, y in curves]

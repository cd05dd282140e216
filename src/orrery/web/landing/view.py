"""Content of the landing page: its choices, the chart's data, and the answer for a page without scripts."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from orrery.catalog.api_prices import api_prices_of
from orrery.catalog.devices import get_device
from orrery.catalog.models import model_names
from orrery.catalog.prices import price_of
from orrery.reports.words import BOUND_BY
from orrery.web.landing import shipped
from orrery.web.landing.best import MS, Best, Limits, Row, best_row, named_rows, usd_per_million
from orrery.web.landing.choices import (
    BITS,
    DEVICES,
    ENGINES,
    MAX_DEVICES,
    MODELS,
    SIZES,
    TPOT_S,
    TRAFFIC,
    TTFT_S,
    Accelerator,
    formats_on,
    keys_of,
)
from orrery.web.landing.points import COLUMNS, LIMITS, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Parameters of the page's address; what it leaves open takes the defaults."""

    model: str = MODELS[0].key
    engine: str = "vllm"
    traffic: str = "1k/1k"
    bits: str = ""
    ttft_s: float = TTFT_S
    tpot_s: float = TPOT_S

    @property
    def lengths(self) -> tuple[int, int]:
        """Input and output tokens."""
        return TRAFFIC[self.traffic]

    @property
    def limits(self) -> Limits:
        """The SLO."""
        return Limits(ttft_s=self.ttft_s, tpot_s=self.tpot_s)

    @property
    def title(self) -> str:
        """The model as people write it."""
        return next((m.title for m in MODELS if m.key == self.model), self.model.rpartition("/")[2])


@lru_cache(maxsize=64)
def chart_data(choice: Choice) -> dict[str, Any]:
    """All that the page's script draws; without rows where a model is not computed ahead. Not to be changed."""
    rows = rows_of(choice)
    return {
        "model": choice.model,
        "title": choice.title,
        "engine": choice.engine,
        "traffic": choice.traffic,
        "lengths": choice.lengths,
        "columns": COLUMNS,
        "limits": [BOUND_BY[name] for name in LIMITS],
        "devices": [_device(choice, d) for d in DEVICES],
        "rows": rows,
        "apis": apis_of(choice),
        "published": shipped.published(choice.model, choice.engine, choice.traffic),
        "isComputed": bool(rows),
        "version": shipped.version_of(choice.model),
        "maxDevices": MAX_DEVICES,
    }


def apis_of(choice: Choice) -> list[dict[str, Any]]:
    """Public API prices of the model, in dollars for a million output tokens together with the input that they take."""
    found = [
        {
            "name": known.name.partition("/")[0],
            "usd": round(known.usd_per_million(*choice.lengths), 4),
            "asOf": known.as_of,
        }
        for known in api_prices_of(choice.model)
    ]
    return sorted(found, key=lambda one: one["usd"])


def rows_of(choice: Choice) -> dict[str, dict[str, Rows]]:
    """The rows that were computed ahead, by device and class of formats; empty where they were not."""
    known = shipped.is_shipped(choice.model, choice.engine, choice.traffic)
    return shipped.shipped(choice.model, choice.engine) if known else {}


def usual_bits(choice: Choice) -> str:
    """The class of formats that the page opens with: 8 bits, or what the checkpoint holds where it is narrower."""
    have = set(formats_on(choice.model, "b200"))
    return next(bits for bits in ("8", "4", "16") if bits in have) if have else BITS[0]


def rows_by_device(choice: Choice) -> dict[str, list[Row]]:
    """The rows of one class of formats that were computed ahead, by device."""
    bits = choice.bits or usual_bits(choice)
    return {device: named_rows(found.get(bits, [])) for device, found in rows_of(choice).items()}


@lru_cache(maxsize=64)
def best_of(choice: Choice) -> tuple[Best, ...]:
    """The best point of each accelerator within the SLO, cheapest first, unknown prices last."""
    rows = rows_by_device(choice)
    found = [b for d in DEVICES if (b := _best(d, best_row(rows.get(d.key, []), choice.limits)))]
    return tuple(sorted(found, key=lambda b: (b.usd_per_million is None, b.usd_per_million or -b.row["rate"])))


def summary(choice: Choice) -> str:
    """The answer in a sentence."""
    found = best_of(choice)
    if not found:
        return f"Every accelerator at its best layout for {choice.title}: tokens/s per user, per device and $/M tokens."
    first, within = found[0], f"TTFT within {choice.ttft_s * MS:g} ms and TPOT within {choice.tpot_s * MS:g} ms"
    cost = (
        f"${first.usd_per_million:.3g} per M output tokens"
        if first.usd_per_million
        else f"{first.row['rate']:,.0f} tokens/s"
    )
    return f"{choice.title} on {first.device.title}: {cost} with {within}; {len(found)} accelerators compared."


def menus() -> dict[str, Any]:
    """The choices of the filters."""
    return {"popular": MODELS, "engines": ENGINES, "traffics": tuple(TRAFFIC), "vendors": vendors(), "sizes": SIZES}


@cache
def vendors() -> tuple[str, ...]:
    """Vendors of the chart's accelerators."""
    return tuple(dict.fromkeys(get_device(d.key).vendor for d in DEVICES))


@cache
def all_models() -> tuple[str, ...]:
    """Names that the picker offers, popular ones first."""
    return (*(m.title for m in MODELS), *model_names())


def _best(device: Accelerator, row: Row | None) -> Best | None:
    if row is None:
        return None
    price = price_of(device.key)
    return Best(
        device=device,
        row=row,
        usd_per_million=usd_per_million(price.usd_per_device_hour, row["rate"]) if price else None,
    )


def _device(choice: Choice, device: Accelerator) -> dict[str, Any]:
    known, price = get_device(device.key), price_of(device.key)
    return {
        "key": device.key,
        "title": device.title,
        "vendor": known.vendor,
        "hue": device.hue,
        "isCard": device.is_card,
        "isServed": device.key in keys_of(choice.engine),
        "usdPerHour": price and round(price.usd_per_device_hour, 4),
        "priceNote": price.note if price else "",
        "formats": formats_on(choice.model, device.key),
    }

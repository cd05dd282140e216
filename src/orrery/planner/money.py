"""Dollars: what a device costs by the hour, dated, and what that makes a million tokens cost."""

from dataclasses import dataclass

from orrery.base.sources import Fact
from orrery.base.units import percent
from orrery.catalog.prices import price_of
from orrery.hardware.device import Device

J_PER_KWH = 3.6e6
S_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """Price of one device: by the hour, and the electricity on top where the user asks for it."""

    usd_per_hour: float | None  # None: no price is known
    electricity_usd_per_kwh: float = 0.0
    because: str = ""  # whose price, of which day
    notes: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    is_stale: bool = False  # older than a year

    def usd_per_s(self, num_devices: float, power_w: float) -> float | None:
        """Dollars a second for some devices that draw that power in all."""
        if self.usd_per_hour is None:
            return None
        return num_devices * self.usd_per_hour / S_PER_HOUR + power_w * self.electricity_usd_per_kwh / J_PER_KWH

    def usd_per_million(self, num_devices: float, power_w: float, tokens_per_s: float) -> float | None:
        """Dollars for a million tokens at that rate."""
        usd_per_s = self.usd_per_s(num_devices, power_w)
        return None if usd_per_s is None or tokens_per_s <= 0 else usd_per_s / tokens_per_s * 1e6


BUSY_FRAC = 0.5
"""Below this share of what a deployment sustains, its price is mostly that of waiting."""


def idle_notes(tariff: Tariff, used_frac: float) -> tuple[str, ...]:
    """A word beside dollars a token where most of the time, or of the rate, is paid for and not used."""
    if tariff.usd_per_hour is None or used_frac >= BUSY_FRAC:
        return ()
    return (
        f"price: $/M tokens counts idle time: {percent(used_frac)} of the rate that it sustains is used; at that rate "
        f"a token would cost about {used_frac:.2g} times as much",
    )


def tariff_of(device: Device, usd_per_hour: float | None, electricity_usd_per_kwh: float | None) -> Tariff:
    """The user's own price, else the catalogue's for the device, with its date and age."""
    per_kwh = electricity_usd_per_kwh or 0.0
    if usd_per_hour is not None:
        return Tariff(usd_per_hour=usd_per_hour, electricity_usd_per_kwh=per_kwh, because="your own price")
    price = price_of(device.name)
    if price is None:
        note = f"price: none is known for {device.name}; give your own with --usd-per-hour"
        return Tariff(usd_per_hour=None, electricity_usd_per_kwh=per_kwh, because="no price is known", notes=(note,))
    text = f"price: {device.name} ${price.usd_per_device_hour:.3g}/h ({price.note})"
    return Tariff(
        usd_per_hour=price.usd_per_device_hour,
        electricity_usd_per_kwh=per_kwh,
        because=price.note,
        notes=(text,),
        facts=price.facts,
        is_stale=price.is_stale,
    )

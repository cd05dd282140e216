"""The tables of a FLEET.toml, checked. A field of a class here is a setting of the same name in ``fields_fleet``."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import BeforeValidator

from orrery.scenario.fields_fleet import (
    AUTOSCALER_SETTINGS,
    BLOCKS,
    FAULT_SETTINGS,
    FLEET_SETTINGS,
    NAME,
    OUTAGE_SETTINGS,
    POOL_SETTINGS,
    RACK_SETTINGS,
    TENANT_SETTINGS,
)
from orrery.scenario.fields_regions import ORIGIN_SETTINGS, REGION_SETTINGS
from orrery.scenario.inputs import Inputs
from orrery.scenario.kinds import Count, Number, Switch, Word
from orrery.scenario.setting import Setting

KNOWN: Mapping[str, Setting] = {
    s.name: s
    for s in (
        *(*AUTOSCALER_SETTINGS, *TENANT_SETTINGS, *FAULT_SETTINGS, *OUTAGE_SETTINGS, *RACK_SETTINGS),
        *(NAME, *POOL_SETTINGS),
    )
} | {s.name: s for s in FLEET_SETTINGS}
REGION_KNOWN: Mapping[str, Setting] = {s.name: s for s in REGION_SETTINGS}
ORIGIN_KNOWN: Mapping[str, Setting] = {s.name: s for s in ORIGIN_SETTINGS}


class PoolBlock(Inputs, table=KNOWN):
    """One pool of equal replicas; further keys are settings of its deployment."""

    name: Word = None
    replicas_min: Count = None
    replicas_max: Count = None
    prefill_replicas_min: Count = None
    prefill_replicas_max: Count = None
    cold_start_s: Number = None
    purchase: Word = None
    zones: Word = None
    racks: Word = None
    host_power_w: Number = None
    power_priority: Word = None


class PlacedPoolBlock(PoolBlock):
    """A pool with the region that it stands in."""

    region: Word = None


class FleetTop(PoolBlock):
    """The keys at the top of the file, which flags have too; those of a pool are of every pool that does not say."""

    days: Number = None
    autoscaler: Word = None
    autoscaler_knob: tuple[str, ...] = ()
    prefill_autoscaler: Word = None
    prefill_autoscaler_knob: tuple[str, ...] = ()
    rate_curve: Word = None
    peak_to_trough: Number = None
    peak_hour: Number = None
    weekend: Number = None
    bursts_per_day: Number = None
    burst_ratio: Number = None
    burst_length_s: Number = None
    start_hour: Number = None
    survive: Word = None
    max_queue: Count = None
    hours: Word = None
    graph: Word = None
    owned: Word = None
    mix: Switch = None
    stock: Word = None
    share: Word = None
    turn_s: Number = None
    job: tuple[str, ...] = ()
    row_limit_w: Number = None
    power_budget_w: Number = None
    power_cap: Word = None
    power_cap_knob: tuple[str, ...] = ()
    power_low_frac: Number = None
    power_reading_s: Number = None
    power_delay_s: Number = None
    oversubscribe: Switch = None
    power_late: tuple[str, ...] = ()
    usd_per_tonne: Number = None
    fault_rates: Word = None
    regions: Word = None
    origins: Word = None
    region_router: Word = None
    region_router_knob: tuple[str, ...] = ()
    round_trips: Number = None
    cache_moves: Word = None
    region_link_bytes_per_s: Number = None
    region_rtt_ms: Number = None
    egress_usd_per_gb: Number = None
    request_bytes: Number = None
    change: Switch = None
    steady: Switch = None


class AutoscalerBlock(Inputs, table=KNOWN):
    """An autoscaler by name; further keys are its knobs."""

    name: Word = None


class TenantBlock(Inputs, table=KNOWN):
    """One tenant."""

    name: Word = None
    share: Number = None
    priority: Number = None
    budget: Number = None
    burst: Number = None


class FaultsBlock(Inputs, table=KNOWN):
    """Faults and their rates."""

    device_mtbf_s: Number = None
    node_mtbf_s: Number = None
    link_mtbf_s: Number = None
    repair_s: Number = None
    spot_mtbi_s: Number = None
    spot_notice_s: Number = None
    spot_away_s: Number = None
    zone_mtbf_s: Number = None
    zone_away_s: Number = None
    region_mtbf_s: Number = None
    region_away_s: Number = None
    slow_mtbf_s: Number = None
    slow_length_s: Number = None
    slow_ratio: Number = None
    retry: Switch = None


class OutageBlock(Inputs, table=KNOWN):
    """A zone or a region that is lost at a known time."""

    zone: Word = None
    region: Word = None
    start_s: Number = None
    length_s: Number = None


class RowBlock(Inputs, table=KNOWN):
    """A row of machines behind one breaker; further keys are knobs of its rule."""

    name: Word = None
    limit_w: Number = None
    power_cap: Word = None


class RackBlock(RowBlock):
    """A rack of machines, in a row or by itself."""

    row: Word = None


def _as_text(value: Any) -> Any:
    """A number, or a list of numbers, as a curve is written."""
    if isinstance(value, list):
        return ",".join(str(v) for v in cast("list[Any]", value))
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Curve = Annotated[Word, BeforeValidator(_as_text)]
"""One number for all hours, or one for each."""


class RegionBlock(Inputs, table=REGION_KNOWN):
    """One region: where it is, what devices cost there, and its electricity by the hour."""

    name: Word = None
    place: Word = None
    latitude: Number = None
    longitude: Number = None
    utc_offset: Number = None
    zones: Word = None
    prices: Word = None
    hours: Word = None
    usd_per_kwh: Curve = None
    carbon_g_per_kwh: Curve = None
    pue: Number = None


class OriginBlock(Inputs, table=ORIGIN_KNOWN):
    """One origin of requests: where it is, its part of the traffic, and its day."""

    name: Word = None
    place: Word = None
    latitude: Number = None
    longitude: Number = None
    utc_offset: Number = None
    share: Number = None
    rtt_ms: Word = None
    bytes_per_s: Number = None
    regions: Word = None
    rate_curve: Word = None
    peak_to_trough: Number = None
    peak_hour: Number = None
    weekend: Number = None


CLASSES: Mapping[str, type[Inputs]] = {
    "pool": PlacedPoolBlock,
    "autoscaler": AutoscalerBlock,
    "prefill_autoscaler": AutoscalerBlock,
    "tenant": TenantBlock,
    "faults": FaultsBlock,
    "outage": OutageBlock,
    "row": RowBlock,
    "rack": RackBlock,
    "region": RegionBlock,
    "origin": OriginBlock,
}
"""Table -> its class; the same names as ``fields_fleet.BLOCKS``."""

SETTINGS_OF: Mapping[str, Mapping[str, Setting]] = {
    name: {s.name: s for s in settings} for name, settings in BLOCKS.items()
}

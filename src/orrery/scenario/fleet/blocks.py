"""The tables of a FLEET.toml, checked. A field of a class here is a setting of the same name in ``fields_fleet``."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from orrery.scenario.fields_fleet import (
    AUTOSCALER_SETTINGS,
    BLOCKS,
    FAULT_SETTINGS,
    FLEET_SETTINGS,
    NAME,
    OUTAGE_SETTINGS,
    POOL_SETTINGS,
    TENANT_SETTINGS,
)
from orrery.scenario.inputs import Inputs
from orrery.scenario.kinds import Count, Number, Switch, Word
from orrery.scenario.setting import Setting
from orrery.scenario.validation_errors import limited

KNOWN: Mapping[str, Setting] = {
    s.name: s for s in (*AUTOSCALER_SETTINGS, *TENANT_SETTINGS, *FAULT_SETTINGS, *OUTAGE_SETTINGS, NAME, *POOL_SETTINGS)
} | {s.name: s for s in FLEET_SETTINGS}


def _at(name: str) -> Any:
    return Field(**limited(KNOWN[name]))


class PoolBlock(Inputs):
    """One pool of equal replicas; further keys are settings of its deployment."""

    name: Word = None
    replicas_min: Count = _at("replicas_min")
    replicas_max: Count = _at("replicas_max")
    prefill_replicas_min: Count = _at("prefill_replicas_min")
    prefill_replicas_max: Count = _at("prefill_replicas_max")
    cold_start_s: Number = _at("cold_start_s")
    purchase: Word = None
    zones: Word = None


class FleetTop(PoolBlock):
    """The keys at the top of the file, which flags have too; those of a pool are of every pool that does not say."""

    days: Number = _at("days")
    autoscaler: Word = None
    autoscaler_knob: tuple[str, ...] = ()
    prefill_autoscaler: Word = None
    prefill_autoscaler_knob: tuple[str, ...] = ()
    rate_curve: Word = None
    peak_to_trough: Number = _at("peak_to_trough")
    peak_hour: Number = _at("peak_hour")
    weekend: Number = _at("weekend")
    bursts_per_day: Number = _at("bursts_per_day")
    burst_ratio: Number = _at("burst_ratio")
    burst_length_s: Number = _at("burst_length_s")
    start_hour: Number = _at("start_hour")
    survive: Word = None
    max_queue: Count = _at("max_queue")
    hours: Word = None
    fault_rates: Word = None
    change: Switch = None
    steady: Switch = None


class AutoscalerBlock(Inputs):
    """An autoscaler by name; further keys are its knobs."""

    name: Word = None


class TenantBlock(Inputs):
    """One tenant."""

    name: Word = None
    share: Number = _at("share")
    priority: Number = _at("priority")
    budget: Number = _at("budget")
    burst: Number = _at("burst")


class FaultsBlock(Inputs):
    """What goes wrong, and how often."""

    device_mtbf_s: Number = _at("device_mtbf_s")
    node_mtbf_s: Number = _at("node_mtbf_s")
    link_mtbf_s: Number = _at("link_mtbf_s")
    repair_s: Number = _at("repair_s")
    spot_mtbi_s: Number = _at("spot_mtbi_s")
    spot_notice_s: Number = _at("spot_notice_s")
    spot_away_s: Number = _at("spot_away_s")
    slow_mtbf_s: Number = _at("slow_mtbf_s")
    slow_length_s: Number = _at("slow_length_s")
    slow_ratio: Number = _at("slow_ratio")
    retry: Switch = None


class OutageBlock(Inputs):
    """A zone that is lost at a known time."""

    zone: Word = None
    start_s: Number = _at("start_s")
    length_s: Number = _at("length_s")


CLASSES: Mapping[str, type[Inputs]] = {
    "pool": PoolBlock,
    "autoscaler": AutoscalerBlock,
    "prefill_autoscaler": AutoscalerBlock,
    "tenant": TenantBlock,
    "faults": FaultsBlock,
    "outage": OutageBlock,
}
"""Table -> its class; the same names as ``fields_fleet.BLOCKS``."""

SETTINGS_OF: Mapping[str, Mapping[str, Setting]] = {
    name: {s.name: s for s in settings} for name, settings in BLOCKS.items()
}

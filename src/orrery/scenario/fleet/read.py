"""Reading a FLEET.toml and flags: which key belongs to the fleet, to a table of it, or to the deployment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from orrery.base.errors import ScenarioError, nearest
from orrery.fleet.hours.shift import Hours
from orrery.scenario.fields import BY_NAME
from orrery.scenario.fields_fleet import BLOCK_EXAMPLES, FLEET_SETTINGS, LISTS, OPEN
from orrery.scenario.fleet.blocks import (
    CLASSES,
    SETTINGS_OF,
    AutoscalerBlock,
    FaultsBlock,
    FleetTop,
    OriginBlock,
    OutageBlock,
    PlacedPoolBlock,
    RackBlock,
    RegionBlock,
    RowBlock,
    TenantBlock,
)
from orrery.scenario.fleet.placed import PoolInputs, placed
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.schema import Scenario, read_scenario, refuse_foreign
from orrery.scenario.setting import SIMULATE
from orrery.scenario.shift import read_hours

TOP = {s.name: s for s in FLEET_SETTINGS}
SCALERS = ("autoscaler", "prefill_autoscaler")
LISTED = (*(f"{name}_knob" for name in SCALERS), "power_cap_knob", "power_late", "region_router_knob", "job")
"""Settings that may be one text or several."""

WITHOUT_USE = {
    "batch": "a fleet takes rate or trace",
    "concurrency": "a fleet takes rate or trace: a closed loop sends nothing while nothing is served",
    "users": "a fleet takes rate or trace: a closed loop sends nothing while nothing is served",
    "draft_batching": "is of one replica's padded batches, which `orrery simulate` answers; leave it out",
    "draft_pool": "is of one replica's padded batches, which `orrery simulate` answers; leave it out",
    "host_memory_bytes": 'is for weights that sleep; write share = "sleep" beside it, or leave it out',
}
"""Settings of a deployment that a fleet has no use for, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetInputs:
    """A fleet as it was written."""

    top: FleetTop
    scenario: Scenario
    pools: tuple[PoolInputs, ...]
    autoscaler: str = ""
    knobs: Mapping[str, str] = field(default_factory=dict[str, str])
    prefill_autoscaler: str = ""
    prefill_knobs: Mapping[str, str] = field(default_factory=dict[str, str])
    tenants: tuple[TenantBlock, ...] = ()
    faults: FaultsBlock | None = None
    outages: tuple[OutageBlock, ...] = ()
    rows: tuple[tuple[RowBlock, Mapping[str, Any]], ...] = ()  # each with the knobs of its rule
    racks: tuple[tuple[RackBlock, Mapping[str, Any]], ...] = ()
    racks_of_others: frozenset[str] = frozenset()  # in which other services behind the same limits stand
    hours: Hours | None = None  # prices and carbon of electricity
    regions: tuple[RegionBlock, ...] = ()
    origins: tuple[OriginBlock, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def has_prefill(self) -> bool:
        """Whether prompts are computed by replicas of their own."""
        given = (
            self.top.prefill_replicas_min,
            self.top.prefill_replicas_max,
            *(p.scenario.prefill_replicas for p in self.pools),
            *(p.block.prefill_replicas_min for p in self.pools),
            *(p.block.prefill_replicas_max for p in self.pools),
        )
        return any(n is not None for n in given)

    def with_top(self, top: FleetTop) -> "FleetInputs":
        """The same with other keys at the top."""
        return replace(self, top=top)

    def without_autoscaler(self) -> "FleetInputs":
        """The same, with the number of replicas left to somebody else."""
        return replace(self, autoscaler="", knobs={}, prefill_autoscaler="", prefill_knobs={})


def read_fleet(settings: Mapping[str, Any], where: str = "") -> FleetInputs:
    """The fleet that these settings describe. ScenarioError says what is wrong, where, and what to write."""
    plain = {key.replace("-", "_"): value for key, value in settings.items() if value is not None}
    _check_tables(plain, where)
    tables = {name: plain.pop(name) for name in CLASSES if isinstance(plain.get(name), list | dict)}
    own = {name: plain.pop(name) for name in TOP if name in plain}
    for name, value in plain.items():
        _check_key(name, value, where)
    for name in LISTED:
        if isinstance(own.get(name), str):
            own[name] = [own[name]]
    top = read_asked(FleetTop, own, TOP, where)
    base = read_scenario(plain, where)
    _check_use(base)
    where_of = placed(
        top,
        tuple(cast(RegionBlock, b) for b, _ in _blocks("region", tables.get("region"), where)),
        tuple(cast(OriginBlock, b) for b, _ in _blocks("origin", tables.get("origin"), where)),
        _pools(tables.get("pool"), plain, base, where),
        has_pools="pool" in tables,
    )
    scaler, prefill_scaler = (_autoscaler(name, top, tables.get(name), where) for name in SCALERS)
    return FleetInputs(
        top=top,
        scenario=base,
        pools=where_of.pools,
        regions=where_of.regions,
        origins=where_of.origins,
        autoscaler=scaler[0],
        knobs=scaler[1],
        prefill_autoscaler=prefill_scaler[0],
        prefill_knobs=prefill_scaler[1],
        tenants=tuple(cast(TenantBlock, b) for b, _ in _blocks("tenant", tables.get("tenant"), where)),
        faults=next((cast(FaultsBlock, b) for b, _ in _blocks("faults", tables.get("faults"), where)), None),
        outages=tuple(cast(OutageBlock, b) for b, _ in _blocks("outage", tables.get("outage"), where)),
        rows=tuple((cast(RowBlock, b), more) for b, more in _blocks("row", tables.get("row"), where)),
        racks=tuple((cast(RackBlock, b), more) for b, more in _blocks("rack", tables.get("rack"), where)),
        hours=None if top.hours is None else read_hours(Path(top.hours)),
        written={**base.written(), **top.written(), **tables},
    )


def _check_tables(plain: Mapping[str, Any], where: str) -> None:
    """Refuse a value in the place of a table."""
    for name, value in plain.items():
        if name in CLASSES and name not in TOP and not isinstance(value, list | dict):
            raise ScenarioError(f"{where or 'fleet'}: {name}: got {value!r}; write it as {BLOCK_EXAMPLES[name]}.")


def _check_key(name: str, value: Any, where: str) -> None:
    """Refuse a table that is none, and name what a key may mean that there is not."""
    prefix = f"{where}: " if where else ""
    if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
        near = nearest(name, CLASSES)
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(BLOCK_EXAMPLES.values())}."
        )
        raise ScenarioError(f"{prefix}There is no table {name!r} in a fleet; {hint}")
    if name not in BY_NAME and (near := nearest(name, TOP, 1, 0.8)):
        raise ScenarioError(f"{prefix}There is no setting {name!r}; did you mean {near[0]!r}?")


def refuse_foreign_settings(settings: Mapping[str, Any]) -> None:
    """ScenarioError where a keyword is neither the fleet's nor of what it simulates."""
    own = (*TOP, *WITHOUT_USE)
    refuse_foreign("fleet", {key: value for key, value in settings.items() if key not in own}, SIMULATE)


def _check_use(scenario: Scenario) -> None:
    for name, why in WITHOUT_USE.items():
        if getattr(scenario, name) is not None:
            raise ScenarioError(f"{name}: {why}.")


def _blocks(name: str, raw: Any, where: str) -> list[tuple[Inputs, dict[str, Any]]]:
    """The tables of a name, checked, each with its further keys."""
    if raw is None:
        return []
    if isinstance(raw, dict) == (name in LISTS):
        raise ScenarioError(f"{where or 'fleet'}: {name}: write it as {BLOCK_EXAMPLES[name]}.")
    found: list[tuple[Inputs, dict[str, Any]]] = []
    listed = cast("list[dict[str, Any]]", raw if name in LISTS else [raw])
    if not listed and name == "pool":
        raise ScenarioError(f"{where or 'fleet'}: {name}: is empty; write a {BLOCK_EXAMPLES[name]}, or leave it out.")
    for k, table in enumerate(listed, start=1):
        known = SETTINGS_OF[name]
        place = f"{where or 'fleet'}: {BLOCK_EXAMPLES[name]}" + (f" {k}" if name in LISTS else "")
        more = {key: value for key, value in table.items() if key not in known} if name in OPEN else {}
        own = {key: value for key, value in table.items() if key not in more}
        found.append((read_asked(CLASSES[name], own, known, place), more))
    return found


def _pools(raw: Any, plain: Mapping[str, Any], base: Scenario, where: str) -> tuple[PoolInputs, ...]:
    """Every pool with the deployment's settings; without a table there is one pool."""
    blocks = _blocks("pool", raw, where)
    if not blocks:
        return (PoolInputs(block=PlacedPoolBlock(), scenario=base),)
    found: list[PoolInputs] = []
    for k, (block, more) in enumerate(blocks, start=1):
        place = f"{where or 'fleet'}: [[pool]] {k}"
        for key in more:
            if key not in BY_NAME and (near := nearest(key, SETTINGS_OF["pool"], 1, 0.8)):
                raise ScenarioError(f"{place}: There is no setting {key!r}; did you mean {near[0]!r}?")
        scenario = read_scenario({**plain, **more}, place) if more else base
        found.append(PoolInputs(block=cast(PlacedPoolBlock, block), scenario=scenario))
    return tuple(found)


def knobs_written(name: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """Knobs by name, as a setting of several NAME=VALUE has them."""
    knobs: dict[str, str] = {}
    for word in (w for text in texts for w in text.replace(",", " ").split()):
        knob, equals, value = word.partition("=")
        if not knob or not equals or not value:
            raise ScenarioError(f"{name}: got {word!r}; write NAME=VALUE, such as {example}.")
        knobs[knob] = value
    return knobs


def _autoscaler(kind: str, top: FleetTop, raw: Any, where: str) -> tuple[str, dict[str, str]]:
    """The name and knobs of an autoscaler, from the flags or the table."""
    knobs = knobs_written(f"{kind}_knob", getattr(top, f"{kind}_knob"), "target=16")
    named: str | None = getattr(top, kind)
    if raw is None:
        if knobs and not named:
            raise ScenarioError(f"{kind}_knob: there is no autoscaler; write {kind} = hpa beside it.")
        return named or "", knobs
    block, more = _blocks(kind, raw, where)[0]
    name = cast(AutoscalerBlock, block).name
    if name is None:
        raise ScenarioError(f'{where or "fleet"}: [{kind}]: name is missing; write name = "hpa".')
    return name, {**{key: str(value) for key, value in more.items()}, **knobs}

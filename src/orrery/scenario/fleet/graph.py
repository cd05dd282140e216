"""A task's graph of calls on the devices at least cost: what it costs, what one device alone would, and a sweep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from pathlib import Path
from typing import Any, cast

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.fleet.stages import Placed, Stage, cheapest
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fields_graph import GRAPH_BY_NAME
from orrery.scenario.file import read_settings
from orrery.scenario.fleet.graph_stages import CPU, GraphTop, blocks_in, deployments_for, rents_of, stages_of
from orrery.scenario.inputs import read_asked
from orrery.scenario.objectives import read_objectives
from orrery.scenario.ownership import bought, check_ownership
from orrery.scenario.resolve import device_names
from orrery.scenario.schema import read_scenario

LINK_BYTES_PER_S = 50e9
PRICE_RATIOS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
"""Prices of one device after the other that are tried, as parts of its own."""

OF_GRAPH = (
    *("graph", "device", "slo", "rate", "weights", "kv", "engine", "seed", "model", "tp"),
    *("usd_per_hour", "device_usd_per_hour", "device_buy_usd", "life_months", "upkeep_frac", "pue", "electricity"),
)
"""Settings that a graph takes beside its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePoint:
    """The best placement where one device's price is another one."""

    device: str
    price_ratio: float
    usd: float
    alone_usd: float  # of the best single device; infinite where none is fast enough
    machines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphAnswer:
    """Where every stage runs, what a task costs and takes, and what one device alone would."""

    stages: tuple[Stage, ...]
    placed: Placed
    alone: Mapping[str, Placed | None]
    sweep: tuple[PricePoint, ...]
    usd_per_s: Mapping[str, float]
    rate_requests_per_s: float
    notes: tuple[str, ...]

    @property
    def is_mixed(self) -> bool:
        """Whether models run on several kinds of device."""
        return len({name for name in self.placed.machines if name != CPU}) > 1

    @property
    def saving_frac(self) -> float | None:
        """Part of the cost that the mix saves over the best single device; None where none is fast enough."""
        known = [p.usd for p in self.alone.values() if p is not None]
        return 1.0 - self.placed.usd / min(known) if known else None

    @property
    def machines(self) -> dict[str, int]:
        """Machines of each kind that the rate keeps busy."""
        busy: dict[str, float] = {}
        for stage, name in zip(self.stages, self.placed.machines, strict=True):
            busy[name] = busy.get(name, 0.0) + self.rate_requests_per_s * stage.work[name].busy_s
        return {name: ceil(share - 1e-9) for name, share in busy.items()}

    def to_json(self) -> dict[str, Any]:
        """The answer in SI units."""
        rows = [
            {"stage": s.name, "machine": name, **{k: getattr(s.work[name], k) for k in ("busy_s", "wait_s")}}
            for s, name in zip(self.stages, self.placed.machines, strict=True)
        ]
        alone = {
            name: None if p is None else {"usd": p.usd, "latency_s": p.latency_s} for name, p in self.alone.items()
        }
        return to_json(
            {
                "stages": rows,
                "usd": self.placed.usd,
                "latency_s": self.placed.latency_s,
                "alone": alone,
                "saving_frac": self.saving_frac,
                "machines": self.machines if self.rate_requests_per_s else {},
                "sweep": self.sweep,
                "notes": self.notes,
            }
        )


def place_graph(settings: Mapping[str, Any]) -> GraphAnswer | InfeasibleAnswer:
    """Place the calls of ``graph`` (a file, or its tables) on devices."""
    plain = {key: value for key, value in settings.items() if value is not None and value is not False}
    if strange := [key for key in plain if key not in OF_GRAPH]:
        raise ScenarioError(f"{strange[0]}: is not about a graph; it takes {', '.join(OF_GRAPH)}.")
    raw = plain.pop("graph")
    tables = cast("Mapping[str, Any]", raw) if isinstance(raw, Mapping) else read_settings(Path(str(raw)))
    scenario = read_scenario(plain)
    if scenario.device is None:
        raise ScenarioError('graph: needs devices; write device = "h100-sxm,l40s".')
    check_ownership(scenario, device_names(scenario))
    if not bought(scenario) and (given := [n for n in ("pue", "electricity") if getattr(scenario, n) is not None]):
        raise ScenarioError(f"{given[0]}: a rent contains electricity; write device_buy_usd to own the devices.")
    top = read_asked(GraphTop, {k: v for k, v in tables.items() if k != "stage"}, GRAPH_BY_NAME, "graph")
    blocks = blocks_in(cast("list[dict[str, Any]]", tables.get("stage") or []))
    limits = {o.metric: o.limit_s for o in read_objectives(scenario.slo)}
    deployments, notes = deployments_for(scenario, blocks)
    stages = stages_of(blocks, deployments, limits.get("tpot", inf))
    usd_per_s, price_notes = rents_of(scenario, deployments, top, blocks)
    link, limit_s = top.link_bytes_per_s or LINK_BYTES_PER_S, limits.get("e2el", inf)
    names = device_names(scenario)
    best = cheapest(stages, usd_per_s, link, limit_s, (*names, CPU))
    if best is None:
        return InfeasibleAnswer(
            infeasible=_too_slow(stages, usd_per_s, link, limit_s, (*names, CPU)), settings=dict(plain)
        )
    return GraphAnswer(
        stages=tuple(stages),
        placed=best,
        alone={name: cheapest(stages, usd_per_s, link, limit_s, (name, CPU)) for name in names},
        sweep=_sweep(stages, usd_per_s, link, limit_s, names),
        usd_per_s=usd_per_s,
        rate_requests_per_s=scenario.rate or 0.0,
        notes=(*notes, *price_notes),
    )


def _sweep(
    stages: Sequence[Stage], usd_per_s: Mapping[str, float], link: float, limit_s: float, names: Sequence[str]
) -> tuple[PricePoint, ...]:
    """The best placement, and the best single device, where one device after the other has another price."""
    found: list[PricePoint] = []
    for device in names if len(names) > 1 and all(name in usd_per_s for name in names) else ():
        for ratio in PRICE_RATIOS:
            rents = {**usd_per_s, device: usd_per_s[device] * ratio}
            best = cheapest(stages, rents, link, limit_s, (*names, CPU))
            alone = [cheapest(stages, rents, link, limit_s, (name, CPU)) for name in names]
            if best is not None:
                found.append(
                    PricePoint(
                        device=device,
                        price_ratio=ratio,
                        usd=best.usd,
                        alone_usd=min((p.usd for p in alone if p is not None), default=inf),
                        machines=tuple(dict.fromkeys(best.machines)),
                    )
                )
    return tuple(found)


def _too_slow(
    stages: Sequence[Stage], usd_per_s: Mapping[str, float], link: float, limit_s: float, allowed: Sequence[str]
) -> Infeasible:
    """The stage that no device runs, or how long the quickest placement of the stages' waits takes."""
    lost = next((s.name for s in stages if not s.work), "")
    waits = [replace(s, work={n: replace(w, busy_s=w.wait_s) for n, w in s.work.items()}) for s in stages]
    quickest = None if lost else cheapest(waits, dict.fromkeys(usd_per_s, 1.0), link, inf, allowed)
    change = "Allow more time for a task or a token, or add a faster or larger device."
    if quickest is None:
        return Infeasible(what=f"a device that runs {lost}", need=1.0, have=0.0, unit="devices", smallest_change=change)
    return Infeasible(what="time of a task", need=quickest.latency_s, have=limit_s, unit="s", smallest_change=change)

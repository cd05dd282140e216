"""Several models over several kinds of devices: the cheapest replicas for all services together, then simulated.

Each service's requests are cut into sizes; what a replica of each type carries of each size within the limit on time
per output token is its steady rate. One integer program rents the replicas for every service's busiest hour, within
what is in stock of each device. Then each type serves its part of each size over the days, request by request.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.execution.memory import Infeasible
from orrery.fleet.mix import Block, Bucket, Mix, buckets, cells_of, cheapest_together
from orrery.fleet.service.rate_curve import hourly_means
from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.tenants import Split, without
from orrery.planner.money import S_PER_HOUR
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.answer import FleetAnswer, answer_of
from orrery.scenario.fleet.build import built
from orrery.scenario.fleet.by_hour import check_hours
from orrery.scenario.fleet.curve import curve_of
from orrery.scenario.fleet.read import FleetInputs, read_fleet
from orrery.scenario.fleet.services import ServicesAnswer
from orrery.scenario.fleet.traffic import FleetTraffic, mean_rate, traffic_for
from orrery.scenario.mix import EDGES, Type, limit_of, loads_of, rated_types, too_slow
from orrery.scenario.resolve import words
from orrery.serving.requests import Floats, Ints

OF_MIX = ("mix", "stock", "spare_frac")
FIXED = (
    "pool",
    "autoscaler",
    "prefill_autoscaler",
    "replicas",
    "replicas_min",
    "replicas_max",
    "prefill_replicas",
    "prefill_replicas_max",
    "tenant",
    "survive",
    "steady",
    "job",
)
"""Settings that a mix chooses, or that are of one pool alone."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixedService:
    """One service before its replicas are chosen."""

    name: str
    settings: Mapping[str, Any]
    inputs: FleetInputs
    traffic: FleetTraffic
    sizes: tuple[Bucket, ...]
    types: tuple[Type, ...]
    loads_ratio: Floats  # replicas that each size keeps busy of each type in the busiest hour
    peak_requests_per_s: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixedAnswer:
    """The replicas that were chosen for each service, and each type's part of it over the days."""

    services: tuple[MixedService, ...]
    mixes: tuple[Mix, ...]
    parts: ServicesAnswer  # by service and type
    stock: Mapping[str, int]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the choice and of every part."""
        chosen = (f"{s.name}: {note}" for s in self.services for note in s.notes)
        return tuple(dict.fromkeys((*chosen, *self.parts.notes)))

    @property
    def usd_per_hour(self) -> float:
        """Rent of all replicas."""
        return sum(m.usd_per_s for m in self.mixes) * S_PER_HOUR

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Replicas of each service and type that are rented."""
        return [
            {
                "service": s.name,
                "device": t.device,
                "tp": t.tp,
                "replicas": int(mix.num_replicas[k]),
                "usd_per_hour": float(mix.num_replicas[k]) * t.usd_per_s * S_PER_HOUR,
                "requests_frac": float(mix.dealt_frac[:, k] @ np.array([z.share_frac for z in s.sizes])),
            }
            for s, mix in zip(self.services, self.mixes, strict=True)
            for k, t in enumerate(s.types)
            if mix.num_replicas[k]
        ]

    def to_json(self) -> dict[str, Any]:
        """The answer in SI units."""
        peaks = {s.name: s.peak_requests_per_s for s in self.services}
        plain = {"mix": self.rows, "usd_per_hour": self.usd_per_hour, "stock": dict(self.stock)}
        return to_json({**plain, "peak_requests_per_s": peaks, **self.parts.to_json(), "notes": list(self.notes)})


def mixed_fleet(settings: Mapping[str, Any], where: str) -> MixedAnswer | InfeasibleAnswer:
    """Choose replicas for every service of some settings, and serve them."""
    tables = cast("list[Mapping[str, Any]]", settings.get("service") or [{}])
    shared = {key: value for key, value in settings.items() if key != "service"}
    stock = _stock(settings.get("stock"))
    services: list[MixedService] = []
    for k, table in enumerate(tables, start=1):
        own = {key.replace("-", "_"): value for key, value in table.items() if key != "name"}
        services.append(_service(str(table.get("name", f"service {k}")), {**shared, **own}, where))
    if len({s.name for s in services}) < len(services):
        raise ScenarioError("service: two have the same name; give each a name of its own.")
    for s in services:
        if not np.isfinite(s.loads_ratio).any(axis=1).all():
            found = too_slow(s.sizes, s.loads_ratio, s.types, limit_of(s.inputs.scenario))
            return InfeasibleAnswer(infeasible=found, notes=s.notes, settings=dict(settings))
    mixes = cheapest_together(
        [
            Block(
                loads_ratio=s.loads_ratio,
                usd_per_s=np.array([t.usd_per_s for t in s.types]),
                num_devices=_taken(s, stock),
            )
            for s in services
        ],
        np.array(list(stock.values()), dtype=np.float64),
    )
    if mixes is None:
        return InfeasibleAnswer(infeasible=_short(services, stock), notes=(), settings=dict(settings))
    return _served(services, mixes, stock)


def _stock(text: Any) -> dict[str, int]:
    """``h100-sxm=8,l4=20``: devices that there are; of others any number."""
    found: dict[str, int] = {}
    for word in words(str(text)) if text else ():
        name, _, count = word.partition("=")
        if not name or not count.isdigit():
            raise ScenarioError(f"stock: got {word!r}; write DEVICE=COUNT, such as h100-sxm=8,l4=20.")
        found[name] = int(count)
    return found


def _service(name: str, settings: Mapping[str, Any], where: str) -> MixedService:
    """The traffic, sizes and types of one service."""
    if given := [key for key in FIXED if settings.get(key)]:
        raise ScenarioError(f"{given[0]}: a mix chooses replicas by itself; leave out {given[0]}, or mix.")
    plain = {key: value for key, value in settings.items() if key not in OF_MIX}
    inputs = read_fleet(plain, where)
    if inputs.scenario.model is None or inputs.scenario.device is None:
        raise ScenarioError('mix: needs a model and devices; write model = "llama-3.1-8b" and device = "l4,h100-sxm".')
    scenario, traffic = inputs.scenario, traffic_for(inputs)
    limit_s, requests = limit_of(scenario), traffic.split.requests
    if requests.after.size:
        raise ScenarioError("mix: cuts independent requests into sizes; these wait for one another.")
    sizes = buckets(requests.input_tokens, requests.output_tokens, EDGES)
    types, notes = rated_types(scenario, sizes, {})
    rate, _ = mean_rate(scenario)
    law = curve_of(inputs.top)
    peak = rate * (float(hourly_means(law.weekly()).max()) if law is not None else 1.0)
    return MixedService(
        name=name,
        settings=plain,
        inputs=inputs,
        traffic=traffic,
        sizes=sizes,
        types=types,
        loads_ratio=loads_of(types, sizes, peak, limit_s, float(settings.get("spare_frac") or 0.0)),
        peak_requests_per_s=peak,
        notes=(*notes, f"mix: sized for {peak:.4g} requests/s, its busiest hour"),
    )


def _taken(service: MixedService, stock: Mapping[str, int]) -> Ints:
    """Devices that a replica of each type takes of each kind in stock."""
    for name in stock:
        if name not in {t.device for t in service.types}:
            raise ScenarioError(f"stock: {name} is no device of {service.name}; write it in device, or leave it out.")
    rows = [[t.deployment.layout.num_devices * (t.device == name) for name in stock] for t in service.types]
    return np.array(rows, dtype=np.int64).reshape(len(service.types), len(stock))


def _short(services: list[MixedService], stock: Mapping[str, int]) -> Infeasible:
    """How many devices would do at the least, by the types that take fewest for each size."""
    need = 0.0
    for s in services:
        each = np.array([t.deployment.layout.num_devices for t in s.types])
        need += float((s.loads_ratio * each).min(axis=1).sum())
    return Infeasible(
        what="devices in stock for the busiest hour of all services",
        need=float(np.ceil(need)),
        have=float(sum(stock.values())),
        unit="devices",
        smallest_change="Have more devices, allow more time per output token, or keep less spare.",
    )


def _served(services: list[MixedService], mixes: tuple[Mix, ...], stock: Mapping[str, int]) -> MixedAnswer:
    """Each type serves what it is dealt of its service."""
    found: dict[str, FleetAnswer] = {}
    for s, mix in zip(services, mixes, strict=True):
        dealt = _dealt(s, mix)
        for k, t in enumerate(s.types):
            if (dealt == k).any():
                part = _part(s, t, int(mix.num_replicas[k]), dealt != k)
                found[f"{s.name} on {t.device}" + (f" tp{t.tp}" if t.tp > 1 else "")] = part
    return MixedAnswer(services=tuple(services), mixes=mixes, parts=ServicesAnswer(services=found), stock=stock)


def _dealt(service: MixedService, mix: Mix) -> Ints:
    """The type that serves each request: drawn by its size's shares."""
    requests, seed = service.traffic.split.requests, service.inputs.scenario.seed or 0
    _, size = np.unique(cells_of(requests.input_tokens, requests.output_tokens, EDGES), return_inverse=True)
    edges = np.cumsum(mix.dealt_frac / mix.dealt_frac.sum(axis=1, keepdims=True), axis=1)
    drawn = stream(seed, "mix").random(requests.count)
    chosen = (drawn[:, None] >= edges[size]).sum(axis=1)
    last = np.array([int(np.flatnonzero(row > 0.0)[-1]) for row in mix.dealt_frac])
    return np.minimum(chosen, last[size]).astype(np.int64)


def _part(service: MixedService, kind: Type, replicas: int, left_out: np.ndarray) -> FleetAnswer:
    """The replicas of one type with their requests, over the days."""
    started = time.perf_counter()
    settings = {**service.settings, "device": kind.device, "tp": kind.tp, "replicas": replicas}
    inputs, requests = read_fleet(settings), without(service.traffic.split.requests, left_out)
    setup = built(inputs, requests, service.traffic.length_s)
    assert not isinstance(setup, Infeasible)  # its rates would be empty
    run = run_fleet(setup.setup, requests, seed=inputs.scenario.seed or 0)
    assert not isinstance(run, Infeasible)
    split = Split(
        requests=requests,
        tenant=np.zeros(0, dtype=np.int64),
        shed=np.zeros(requests.count, dtype=np.bool_),
        shed_s=np.zeros(0),
    )
    traffic = FleetTraffic(
        split=split, length_s=service.traffic.length_s, curve=service.traffic.curve, notes=service.traffic.notes
    )
    notes = (*setup.notes, *traffic.notes, *check_hours(inputs, setup.setup))
    return answer_of(inputs, traffic, run, notes, time.perf_counter() - started)

"""The cheapest mix of device types for a trace: its requests cut into sizes, each served where it costs least.

A type is a device with a tensor-parallel degree. What a replica of each type serves of each size within the limit on
time per output token is its steady rate; how many of each to rent is an integer program, solved exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.catalog.traces import load_trace
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.fleet.mix import Bucket, Mix, ReplicaRates, buckets, cheapest, pace
from orrery.planner.money import S_PER_HOUR, tariff_of
from orrery.planner.space import tensor_degrees
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.objectives import read_objectives
from orrery.scenario.own_price import own_usd_per_hour
from orrery.scenario.resolve import deploy, device_names, find, formats_of, layout_of
from orrery.scenario.schema import Scenario, merged, read_scenario, refuse_foreign
from orrery.scenario.traffic import traffic_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EDGES = (64.0, 256.0, 1024.0, 4096.0, 16384.0)
"""Tokens between two sizes, for prompts and outputs alike."""

MAX_TP = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Type:
    """One kind of replica that may be rented."""

    deployment: Deployment
    usd_per_s: float
    rates: tuple[ReplicaRates, ...] = ()  # by size

    @property
    def device(self) -> str:
        """Return the device's name."""
        return self.deployment.cluster.device.name

    @property
    def tp(self) -> int:
        """Return the devices of a replica."""
        return self.deployment.layout.tp


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixAnswer:
    """The cheapest mix, and the cheapest fleet of each device alone."""

    types: tuple[Type, ...]
    sizes: tuple[Bucket, ...]
    mix: Mix
    alone_usd_per_s: Mapping[str, float]  # by device; infinite where it cannot serve every size
    requests_per_s: float
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def saving_frac(self) -> Mapping[str, float]:
        """Return the part of the rent that the mix saves over each device alone."""
        alone = self.alone_usd_per_s.items()
        return {name: 1.0 - self.mix.usd_per_s / usd for name, usd in alone if np.isfinite(usd)}

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        types = [
            {
                "device": t.device,
                "tp": t.tp,
                "replicas": int(self.mix.num_replicas[i]),
                "usd_per_hour": t.usd_per_s * S_PER_HOUR,
                "dealt_frac": self.mix.dealt_frac[:, i],
            }
            for i, t in enumerate(self.types)
        ]
        return to_json(
            {
                "types": types,
                "sizes": self.sizes,
                "usd_per_hour": self.mix.usd_per_s * S_PER_HOUR,
                "alone_usd_per_hour": {name: usd * S_PER_HOUR for name, usd in self.alone_usd_per_s.items()},
                "saving_frac": self.saving_frac,
                "requests_per_s": self.requests_per_s,
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def plan_mix(
    scenario: Scenario | None = None,
    /,
    *,
    lengths: tuple[Ints, Ints] | None = None,
    rents_usd_per_hour: Mapping[str, float] | None = None,
    **settings: Any,
) -> MixAnswer | InfeasibleAnswer:
    """Return the cheapest mix of the scenario's devices for its trace, within its limit on time per output token.

    ``lengths`` (prompts, outputs) stand in place of a trace's, ``rents_usd_per_hour`` in place of the catalogue's.
    """
    inputs = merged(scenario, settings)
    refuse_foreign("plan", settings)
    limit_s = limit_of(inputs)
    prompts, outputs, rate, notes = _requests(inputs, lengths)
    sizes = buckets(prompts, outputs, EDGES)
    rated, type_notes = rated_types(inputs, sizes, rents_usd_per_hour or {})
    spare = inputs.spare_frac or 0.0
    loads = loads_of(rated, sizes, rate, limit_s, spare)
    usd = np.array([t.usd_per_s for t in rated])
    mix = cheapest(loads, usd)
    if mix is None:
        return InfeasibleAnswer(
            infeasible=too_slow(sizes, loads, rated, limit_s), notes=notes, settings=inputs.written()
        )
    alone: dict[str, float] = {}
    for name in dict.fromkeys(t.device for t in rated):
        own = [i for i, t in enumerate(rated) if t.device == name]
        single = cheapest(loads[:, own], usd[own])
        alone[name] = single.usd_per_s if single else float("inf")
    return MixAnswer(
        types=rated,
        sizes=sizes,
        mix=mix,
        alone_usd_per_s=alone,
        requests_per_s=rate,
        notes=(*notes, *type_notes),
        settings=inputs.written(),
    )


def rated_types(
    inputs: Scenario, sizes: tuple[Bucket, ...], rents: Mapping[str, float]
) -> tuple[tuple[Type, ...], tuple[str, ...]]:
    """Every type that may be rented, with what it serves of each size."""
    types, notes = _types(inputs, rents)
    rated = tuple(
        replace(t, rates=tuple(pace(t.deployment, s.input_tokens, s.output_tokens) for s in sizes)) for t in types
    )
    return rated, notes


def loads_of(types: tuple[Type, ...], sizes: tuple[Bucket, ...], rate: float, limit_s: float, spare: float) -> Floats:
    """Return how many replicas each size would keep busy of each type (sizes x types); infinite where too slow."""
    capacity = np.array([[r.highest_per_s(limit_s) for r in t.rates] for t in types]).T
    shares = np.array([s.share_frac for s in sizes])
    with np.errstate(divide="ignore"):
        return shares[:, None] * rate / (capacity * (1.0 - spare))


def limit_of(inputs: Scenario) -> float:
    """The limit on the mean time per output token."""
    for name in (
        "max_usd_per_hour",
        "prefill_device",
        "decode_device",
        "layerwise_transfer",
        "max_prefill_queue",
    ):
        if getattr(inputs, name) is not None:
            raise ScenarioError(f"{name}: a mix finds the least dollars and has no pools; leave it out.")
    limits = {o.metric: o for o in read_objectives(inputs.slo)}
    if set(limits) != {"tpot"} or limits["tpot"].percent:
        raise ScenarioError("slo: a mix is chosen for one limit on the mean time per output token; write tpot:100.")
    return limits["tpot"].limit_s


def _requests(inputs: Scenario, lengths: tuple[Ints, Ints] | None) -> tuple[Ints, Ints, float, tuple[str, ...]]:
    if lengths is not None:
        if not inputs.rate:
            raise ScenarioError("rate: is missing; write the requests a second.")
        return *lengths, inputs.rate, ()
    if inputs.trace is None:
        raise ScenarioError('trace: is missing; a mix is for requests of many sizes, such as trace = "chat".')
    traffic, notes = traffic_of(inputs)
    trace = load_trace(inputs.trace, inputs.seed or 0)
    return trace.input_tokens, trace.output_tokens, traffic.request_rate_per_s, notes


def _types(inputs: Scenario, rents: Mapping[str, float]) -> tuple[tuple[Type, ...], tuple[str, ...]]:
    """Every device with every tensor-parallel degree that may be used."""
    found: list[Type] = []
    notes: list[str] = []
    for name in device_names(inputs):
        parts = find(inputs, name)
        tariff = tariff_of(
            parts.device, rents.get(name, own_usd_per_hour(inputs, parts.device.name)), inputs.electricity
        )
        if tariff.usd_per_hour is None:
            raise ScenarioError(f"device: no price is known for {name}; leave it out, or write usd_per_hour.")
        notes += [*parts.notes, *tariff.notes]
        most = min(MAX_TP, parts.device.devices_per_node)
        for tp in [inputs.tp] if inputs.tp else tensor_degrees(parts.model, most):
            one = read_scenario({**inputs.written(), "device": name, "tp": tp})
            layout, _ = layout_of(one, parts)
            formats, format_notes = formats_of(one, parts)
            notes += format_notes
            deployment = deploy(one, parts, layout, formats)
            found.append(Type(deployment=deployment, usd_per_s=tariff.usd_per_hour * layout.num_devices / S_PER_HOUR))
    return tuple(found), tuple(dict.fromkeys(notes))


def too_slow(sizes: tuple[Bucket, ...], loads: Floats, types: tuple[Type, ...], limit_s: float) -> Infeasible:
    """The first size that no type serves in time, and how near the best of them comes."""
    size = int(np.flatnonzero(~np.isfinite(loads).any(axis=1))[0])
    gaps = [float(t.rates[size].tpot_s.min()) for t in types if t.rates[size].tpot_s.size]
    bucket = sizes[size]
    what = f"time per output token of requests of {bucket.input_tokens:.0f} in and {bucket.output_tokens:.0f} out"
    return Infeasible(
        what=what if gaps else f"memory for requests of {bucket.input_tokens:.0f} in",
        need=limit_s,
        have=min(gaps, default=float("inf")),
        unit="s",
        smallest_change="Allow more time per output token, or add a larger device (or a higher tp).",
    )

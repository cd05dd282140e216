"""Origins of a fleet's requests: their shares, their days on their own clocks, and who sends which request."""

from dataclasses import replace

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.fleet.regions.region_map import Origin
from orrery.fleet.service.rate_curve import MINUTE_S, RateCurve
from orrery.scenario.fleet.blocks import FleetTop, OriginBlock
from orrery.scenario.fleet.curve import CURVE_ALONE, curve_of
from orrery.scenario.fleet.read import FleetInputs
from orrery.scenario.fleet.ways import names_of, utc_offset_s
from orrery.serving.requests import Floats, Ints, Requests

OWN = ("rate_curve", *CURVE_ALONE, "weekend")
"""Settings of a curve that an origin may have of its own."""


def origins_of(inputs: FleetInputs) -> tuple[Origin, ...]:
    """The origins as they were written; shares that are missing are equal parts of the rest."""
    blocks = inputs.origins
    given = sum(b.share for b in blocks if b.share is not None)
    blank = sum(b.share is None for b in blocks)
    if given > 1.0 + 1e-6 or (not blank and abs(given - 1.0) > 1e-6):
        raise ScenarioError(f"origins: their shares add up to {given:g}; write shares that add up to 1.")
    rest = max(0.0, 1.0 - given) / blank if blank else 0.0
    return tuple(
        Origin(
            name=str(b.name),
            share_frac=rest if b.share is None else b.share,
            regions=names_of(b.regions),
        )
        for b in blocks
    )


def has_curve(inputs: FleetInputs) -> bool:
    """Whether the rate varies, for all origins or for one."""
    return curve_of(inputs.top) is not None or any(b.asks(*OWN) for b in inputs.origins)


def origin_curves(inputs: FleetInputs, length_s: float, seed: int) -> Floats:
    """The rate of every origin at each minute as a part of the mean of all (origins, minutes); one row without any."""
    law = curve_of(inputs.top)
    if not inputs.origins:
        return (law or RateCurve()).along(length_s, seed)[None, :]
    rows = [
        o.share_frac * _law(inputs.top, b).along(length_s, seed)
        for o, b in zip(origins_of(inputs), inputs.origins, strict=True)
    ]
    found = np.array(rows)
    if law is not None:
        law.burst(found, length_s, seed)
    return found


def _law(top: FleetTop, block: OriginBlock) -> RateCurve:
    """An origin's curve on its own clock, without bursts, which come to all at once."""
    own = {name: value for name in OWN if (value := getattr(block, name)) is not None}
    plain = top.model_copy(update={"bursts_per_day": None, "burst_ratio": None, "burst_length_s": None, **own})
    law = curve_of(plain) or RateCurve(start_s=3600.0 * (top.start_hour or 0.0))
    return replace(law, start_s=law.start_s + utc_offset_s(block))


def with_origins(inputs: FleetInputs, requests: Requests, curves: Floats) -> tuple[Requests, tuple[str, ...]]:
    """Requests with their origins: as a trace's column says, else dealt at random by the curves of their minute.

    Arrivals along the sum of several curves, each dealt by the parts of its moment, are those of each curve.
    """
    names = [str(b.name) for b in inputs.origins]
    if not names:
        return replace(requests, origin=np.zeros(0, dtype=np.int64)), _unused(requests)
    column = requests.origin
    if column.size:
        unknown = [name for name in requests.origin_names if name not in names]
        if unknown:
            raise ScenarioError(f"trace: origin {unknown[0]!r} is no [[origin]]; there are {', '.join(names)}.")
        numbers = np.array([names.index(name) for name in requests.origin_names], dtype=np.int64)
        known = np.where(column >= 0, numbers[np.maximum(column, 0)], -1)
        dealt = _dealt(requests, curves, inputs.scenario.seed or 0) if (known < 0).any() else known
        return replace(requests, origin=np.where(known >= 0, known, dealt)), ()
    return replace(requests, origin=_dealt(requests, curves, inputs.scenario.seed or 0)), ()


def _unused(requests: Requests) -> tuple[str, ...]:
    return ("trace: its column origin is not used; write an [[origin]] for each",) if requests.origin.size else ()


def _dealt(requests: Requests, curves: Floats, seed: int) -> Ints:
    """An origin for every request; those of one conversation have the first one's."""
    first = _firsts(requests)
    minute = np.minimum((requests.arrive_s[first] / MINUTE_S).astype(np.int64), curves.shape[1] - 1)
    edges = np.cumsum(curves, axis=0)
    draws = stream(seed, "origins").random(requests.count)[first] * edges[-1, minute]
    found = np.zeros(requests.count, dtype=np.int64)
    for row in edges[:-1]:
        found += draws >= row[minute]
    return found


def _firsts(requests: Requests) -> Ints:
    """The request with which each one's conversation began."""
    found = np.arange(requests.count)
    if requests.session.size:
        _, first, back = np.unique(requests.session, return_index=True, return_inverse=True)
        found = np.where(requests.session >= 0, first[back], found)
    if requests.after.size:
        before = np.where(requests.after >= 0, requests.after, found)
        while not np.array_equal(further := before[before], before):
            before = further
        found = before
    return found

"""Weighted: fixed parts of the requests to each region, evenly interleaved."""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.technique import Technique
from orrery.fleet.regions.routing import RegionCosts, RegionView, never_full

HOW = "write the parts as eu:3/us:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedKnobs:
    """Part of each region, such as eu:3/us:1; regions that are not named get none, without any all get the same."""

    parts: str = ""


def parts_of(view: RegionView, text: str) -> dict[str, float]:
    """The part of each region that is named."""
    found: dict[str, float] = {}
    for word in filter(None, text.replace(" ", "").split("/")):
        name, _, number = word.partition(":")
        if name not in view.regions:
            raise ScenarioError(f"parts: there is no region {name!r}; the regions are {', '.join(view.regions)}.")
        try:
            found[name] = float(number)
        except ValueError:
            raise ScenarioError(f"parts: got {word!r}; {HOW}.") from None
        if not 0.0 <= found[name] < 1e9:
            raise ScenarioError(f"parts: got {word!r}; {HOW}, with numbers from 0.")
    if found and not any(found.values()):
        raise ScenarioError(f"parts: all are 0; {HOW}.")
    return found


def rule(view: RegionView, knobs: WeightedKnobs) -> RegionCosts:
    """The parts as weights; where none of the weighted regions takes requests, the nearest does."""
    parts = parts_of(view, knobs.parts)
    weights = np.array([parts.get(name, 0.0 if parts else 1.0) for name in view.regions])
    return RegionCosts(
        cost_ratio=view.round_trip_s,
        full_requests=never_full(view),
        weight_ratio=np.broadcast_to(weights, view.allowed.shape).copy(),
    )


TECHNIQUE = Technique(
    name="weighted-regions",
    word="weighted",
    extension_point="fleet.region_router",
    rule=rule,
    knobs=WeightedKnobs,
    gains="A known part of the traffic to each region: a new region is tried with one request in a hundred.",
    costs="It sees neither distance, load nor price.",
    claims=("nginx-smooth-weighted-round-robin",),
)

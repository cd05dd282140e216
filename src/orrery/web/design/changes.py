"""Small changes to a design that cannot be: each is tried, and those that work are offered."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import OrreryError
from orrery.execution.memory import Infeasible
from orrery.reports.words import said
from orrery.scenario.ask import Answer, estimate
from orrery.scenario.schema import Scenario, merged, read_scenario
from orrery.web.address import query_of

NARROWER = ("fp8", "int4_weight_only")
MOST_WAYS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What to change, what then comes out, and where."""

    told: str
    found: str
    href: str


def changes(asked: Scenario, settings: Mapping[str, Any], lacks: Infeasible) -> Iterator[Change]:
    """The first that works of each kind: more devices, more stages, fewer bits, or less to do."""
    narrower = [name for name in NARROWER if name != asked.weights]
    kinds = (_wider(asked, "tp"), _wider(asked, "pp"), *(_narrower(asked, name) for name in narrower), _lighter(lacks))
    for kind in kinds:
        for change in kind:
            if found := _tried(asked, change):
                told = " and ".join(f"{name} = {value}" for name, value in change.items() if value is not None)
                usd = said(found.usd_per_million_tokens, "usd")
                words = f"{said(found.estimate.tpot_s, 's')} per token, {usd} per million tokens"
                kept = {k: v for k, v in {**settings, **change}.items() if v is not None}
                yield Change(told=told, found=words, href=f"/design?{query_of(kept)}")
                break


def _wider(asked: Scenario, way: str) -> Iterator[dict[str, Any]]:
    degree = 2 * (getattr(asked, way) or 1)
    while degree <= MOST_WAYS:
        yield {way: degree, "devices": None}
        degree *= 2


def _narrower(asked: Scenario, name: str) -> Iterator[dict[str, Any]]:
    """Narrower weights, on more and more devices."""
    narrow = {"weights": name, "activations": None}
    yield narrow
    yield from (narrow | wide for wide in _wider(asked, "tp"))


def _lighter(lacks: Infeasible) -> Iterator[dict[str, Any]]:
    """Fewer arrivals, where they are too many."""
    if lacks.unit == "requests/s":
        yield {"rate": float(f"{0.95 * lacks.have:.3g}")}


def _tried(asked: Scenario, change: Mapping[str, Any]) -> Answer | None:
    try:
        found = estimate(_with(asked, change))
    except OrreryError:
        return None
    return found if isinstance(found, Answer) else None


def _with(asked: Scenario, change: Mapping[str, Any]) -> Scenario:
    removed = {name for name, value in change.items() if value is None}
    kept = read_scenario({name: value for name, value in asked.written().items() if name not in removed})
    return merged(kept, {name: value for name, value in change.items() if value is not None})

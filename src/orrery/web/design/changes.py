"""Small changes to a design that cannot be: each is tried, and those that work are offered."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import OrreryError
from orrery.execution.memory import Infeasible
from orrery.reports.words import format_value
from orrery.scenario.ask import Answer, estimate
from orrery.scenario.schema import Scenario, merged, read_scenario
from orrery.web.address import query_of

NARROWER = ("fp8", "int4_weight_only")
MAX_WAYS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change, its result, and a link to it."""

    description: str
    found: str
    href: str


def changes(scenario: Scenario, settings: Mapping[str, Any], infeasible: Infeasible) -> Iterator[Change]:
    """The first that works of each kind: more devices, more stages, fewer bits, or less to do."""
    narrower = [name for name in NARROWER if name != scenario.weights]
    kinds = (
        _wider(scenario, "tp"),
        _wider(scenario, "pp"),
        *(_narrower(scenario, name) for name in narrower),
        _lighter(infeasible),
    )
    for kind in kinds:
        for change in kind:
            if found := _tried(scenario, change):
                description = " and ".join(f"{name} = {value}" for name, value in change.items() if value is not None)
                usd = format_value(found.usd_per_million_tokens, "usd")
                words = f"{format_value(found.estimate.tpot_s, 's')} per token, {usd} per million tokens"
                remaining = {k: v for k, v in {**settings, **change}.items() if v is not None}
                yield Change(description=description, found=words, href=f"/design?{query_of(remaining)}")
                break


def _wider(scenario: Scenario, way: str) -> Iterator[dict[str, Any]]:
    degree = 2 * (getattr(scenario, way) or 1)
    while degree <= MAX_WAYS:
        yield {way: degree, "devices": None}
        degree *= 2


def _narrower(scenario: Scenario, name: str) -> Iterator[dict[str, Any]]:
    """Narrower weights, on more and more devices."""
    narrow = {"weights": name, "activations": None}
    yield narrow
    yield from (narrow | wide for wide in _wider(scenario, "tp"))


def _lighter(infeasible: Infeasible) -> Iterator[dict[str, Any]]:
    """Fewer arrivals, where they are too many."""
    if infeasible.unit == "requests/s":
        yield {"rate": float(f"{0.95 * infeasible.have:.3g}")}


def _tried(scenario: Scenario, change: Mapping[str, Any]) -> Answer | None:
    try:
        found = estimate(_with(scenario, change))
    except OrreryError:
        return None
    return found if isinstance(found, Answer) else None


def _with(scenario: Scenario, change: Mapping[str, Any]) -> Scenario:
    removed = {name for name, value in change.items() if value is None}
    remaining = read_scenario({name: value for name, value in scenario.written().items() if name not in removed})
    return merged(remaining, {name: value for name, value in change.items() if value is not None})

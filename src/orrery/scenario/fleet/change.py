"""The smallest change that would meet the SLOs, found by simulating the fleet again with each of some changes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orrery.scenario.fleet.answer import Change, FleetAnswer

WIDEST = 64
"""Replicas that are added at most."""

Ask = Callable[[Mapping[str, Any]], FleetAnswer | None]


def smallest_change(answer: FleetAnswer, ask: Ask) -> Change | None:
    """The cheapest of some small changes that meets every SLO; None where none of them does.

    Tried are: one replica more at all times, and doubling until it is enough, then halving the step back; and where
    an autoscaler runs, a calmer or quicker one.
    """
    found: list[Change] = []
    for text, settings in _other_scalers(answer):
        if (tried := ask(settings)) is not None and tried.is_met:
            found.append(_change(answer, tried, text, settings))
    if (more := _replicas(answer, ask)) is not None:
        found.append(more)
    return min(found, key=lambda c: c.added_usd, default=None)


def _change(answer: FleetAnswer, tried: FleetAnswer, text: str, settings: Mapping[str, Any]) -> Change:
    cost = tried.cost_usd
    return Change(text=text, settings=settings, cost_usd=cost, added_usd=cost - answer.cost_usd)


def _replicas(answer: FleetAnswer, ask: Ask) -> Change | None:
    """The fewest replicas more, in every pool's minimum of the first pool, that meet the SLOs."""

    def settings_of(more: int) -> dict[str, Any]:
        return with_more_replicas(answer, more)

    good: dict[int, FleetAnswer] = {}

    def meets(more: int) -> bool:
        tried = ask(settings_of(more))
        if tried is not None and tried.is_met:
            good[more] = tried
        return more in good

    high = 1
    while not meets(high):
        high *= 2
        if high > WIDEST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    text = f"{high} replica{'s' if high > 1 else ''} more at all times"
    return _change(answer, good[high], text, settings_of(high))


def with_more_replicas(answer: FleetAnswer, more: int) -> dict[str, Any]:
    """The fleet's settings with a higher minimum of the first pool, and a higher maximum where that needs it."""
    terms = answer.run.setup.terms[-1] if answer.run.setup.service.pools[0].role != "all" else answer.run.setup.terms[0]
    low = terms.replicas_min + more
    ends = {"replicas_min": low, "replicas_max": max(terms.replicas_max, low)}
    if "pool" in answer.inputs.written:
        pools: list[dict[str, Any]] = answer.inputs.written["pool"]
        return {"pool": [{**pools[0], **ends}, *pools[1:]]}
    return {**ends, "replicas": None}


def _other_scalers(answer: FleetAnswer) -> Iterator[tuple[str, dict[str, Any]]]:
    """Knobs of the autoscaler in use that would make it calmer, or quicker to add."""
    scaler = answer.run.setup.scaler
    if scaler is None:
        return
    knobs = {**answer.inputs.knobs}
    for name, factor, text in (
        ("down_window_s", 2.0, "hold replicas twice as long before they are removed"),
        ("target", 0.5, "half the target"),
        ("target_requests", 0.5, "half the target"),
        ("threshold_requests", 0.5, "half the threshold"),
        ("headroom_frac", 0.75, "a quarter less load a replica"),
    ):
        if hasattr(scaler.knobs, name):
            value = float(getattr(scaler.knobs, name)) * factor
            changed = {**knobs, name: f"{value:g}"}
            settings = {"autoscaler": scaler.name, "autoscaler_knob": [f"{k}={v}" for k, v in changed.items()]}
            yield f"{text} ({name} = {value:g})", settings

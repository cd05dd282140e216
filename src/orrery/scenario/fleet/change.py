"""The smallest change that would meet the SLOs, found by simulating the fleet again with each of some changes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orrery.fleet.service.setup import Scaler
from orrery.scenario.fleet.answer import Change, FleetAnswer

WIDEST = 64
"""Replicas that are added at most."""

NAMES = {"prefill_replicas": "prefill", "replicas": "decode"}
"""Phases by the setting that says how many replicas they have."""

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
    for ends in _ends(answer):
        if (more := _replicas(answer, ask, ends)) is not None:
            found.append(more)
    return min(found, key=lambda c: c.added_usd, default=None)


def _ends(answer: FleetAnswer) -> tuple[tuple[str, ...], ...]:
    """Kinds of replicas to try more of: all alike, or those for prompts alone, those that answer, and both at once."""
    if not answer.inputs.has_prefill:
        return (("replicas",),)
    return (("prefill_replicas",), ("replicas",), ("prefill_replicas", "replicas"))


def _change(answer: FleetAnswer, tried: FleetAnswer, text: str, settings: Mapping[str, Any]) -> Change:
    cost = tried.cost_usd
    return Change(text=text, settings=settings, cost_usd=cost, added_usd=cost - answer.cost_usd)


def _replicas(answer: FleetAnswer, ask: Ask, ends: tuple[str, ...]) -> Change | None:
    """The fewest replicas more, in every pool's minimum of the first pool, that meet the SLOs."""

    def settings_of(more: int) -> dict[str, Any]:
        return with_more_replicas(answer, more, ends)

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
    kind = "" if not answer.inputs.has_prefill else f" of {' and '.join(NAMES[name] for name in ends)}"
    text = f"{high} replica{'s' if high > 1 else ''} more{kind} at all times"
    return _change(answer, good[high], text, settings_of(high))


def with_more_replicas(answer: FleetAnswer, more: int, ends: tuple[str, ...] = ("replicas",)) -> dict[str, Any]:
    """The fleet's settings with a higher minimum of the first pool, and a higher maximum where that needs it."""
    setup = answer.run.setup
    found: dict[str, Any] = {}
    for name in ends:
        is_prefill = name == "prefill_replicas"
        both = zip(setup.service.own_pools, setup.terms, strict=True)
        terms = next(t for p, t in both if (p.role == "prompts") == is_prefill)
        low = terms.replicas_min + more
        found |= {f"{name}_min": low, f"{name}_max": max(terms.replicas_max, low), name: None}
    if "pool" in answer.inputs.written:
        pools: list[dict[str, Any]] = answer.inputs.written["pool"]
        plain = {key: value for key, value in {**pools[0], **found}.items() if value is not None}
        return {"pool": [plain, *pools[1:]], **dict.fromkeys(ends)}
    return found


def _other_scalers(answer: FleetAnswer) -> Iterator[tuple[str, dict[str, Any]]]:
    """Knobs of the autoscaler in use that would make it calmer, or quicker to add."""
    setup, inputs = answer.run.setup, answer.inputs
    for kind, scaler, knobs in (
        ("autoscaler", setup.scaler, inputs.knobs),
        ("prefill_autoscaler", setup.prefill_scaler, inputs.prefill_knobs),
    ):
        if scaler is not None:
            yield from _other_knobs(kind, scaler, knobs)


def _other_knobs(kind: str, scaler: Scaler, knobs: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
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
            settings = {kind: scaler.name, f"{kind}_knob": [f"{k}={v}" for k, v in changed.items()]}
            yield f"{text} ({'prefill, ' if kind != 'autoscaler' else ''}{name} = {value:g})", settings

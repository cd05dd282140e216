"""The techniques of serving, compiled as the loop calls them, and their knobs as plain arrays."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from orrery.base.compiled import callable_rule
from orrery.base.extension_points import ExtensionPoint, knobs_with
from orrery.base.technique import Technique
from orrery.execution.engine import Engine
from orrery.serving import techniques
from orrery.serving.batching import Batching
from orrery.serving.simulation.plug import compiled_by_numba
from orrery.serving.simulation.tables import _kernel as tables

POLICIES = ExtensionPoint(name="serving.policy", folder=techniques, noun="policy")
QUEUES = ExtensionPoint(name="serving.queue", folder=techniques, noun="queue")
ROUTERS = ExtensionPoint(name="serving.route", folder=techniques, noun="router")


def rule_of(technique: Technique) -> Callable[..., Any]:
    """The technique's rule, callable from the compiled loop."""
    return _compiled(technique.rule, technique.extension_point)


@cache
def _compiled(rule: Callable[..., Any], extension_point: str) -> Callable[..., Any]:
    kind = tables.SEAMS[extension_point]
    plugged = compiled_by_numba(rule, kind)
    return callable_rule(rule, tables.__name__, kind, plugged.address if plugged else 0)


def knobs_of(technique: Technique, given: Mapping[str, float]) -> Any:
    """The knobs of a technique with ``given`` in place of defaults."""
    usual = technique.knobs()
    return knobs_with(technique, {k: type(getattr(usual, k, v))(v) for k, v in given.items()})


def values_of(knobs: Any) -> list[float]:
    """Knobs as numbers, in the order of their dataclass."""
    return [float(getattr(knobs, f.name)) for f in fields(knobs)]


def policy_of(engine: Engine) -> str:
    """Default batching policy of an engine."""
    return "chunked-prefill" if engine.has_mixed_steps else "prefill-first"


def batching_of(technique: Technique, given: Mapping[str, float], engine: Engine) -> Batching:
    """A policy's switches; an engine that reserves whole answers does so under any policy."""
    knobs: Batching = knobs_of(technique, given)
    if engine.reserves_output and not knobs.reserves_output:
        knobs = knobs_of(technique, {**given, "reserves_output": True})
    return knobs

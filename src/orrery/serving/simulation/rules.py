"""The techniques of serving by seam and name, compiled as the loop calls them, and their knobs as plain arrays."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from orrery.base.compiled import callable_rule
from orrery.base.errors import ScenarioError, nearest
from orrery.base.extension_points import techniques_at
from orrery.base.technique import Technique
from orrery.execution import techniques as execution_techniques
from orrery.execution.engine import Engine
from orrery.serving import techniques
from orrery.serving.batching import Batching
from orrery.serving.simulation.plug import compiled_by_numba
from orrery.serving.simulation.tables import _kernel as tables


@cache
def known(extension_point: str) -> Mapping[str, Technique]:
    """Every technique at a seam that the simulator calls, by name."""
    return techniques_at(
        execution_techniques if extension_point.startswith("execution.") else techniques, extension_point
    )


def named(extension_point: str, name: str) -> Technique:
    """The technique called ``name``; ScenarioError with the nearest names otherwise."""
    if (found := known(extension_point).get(name)) is None:
        what = {"route": "router"}.get(extension_point.partition(".")[2], extension_point.partition(".")[2])
        near = nearest(name, known(extension_point))
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"write one of {', '.join(known(extension_point))}."
        )
        raise ScenarioError(f"{what}: there is no {name!r}; {hint}")
    return found


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
    names = [f.name for f in fields(technique.knobs)]
    for name in given:
        if name not in names:
            near = nearest(name, names)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(names) or 'none'}."
            raise ScenarioError(f"{technique.name}: has no knob {name!r}; {hint}")
    return technique.knobs(**{k: type(getattr(technique.knobs(), k))(v) for k, v in given.items()})


def values_of(knobs: Any) -> list[float]:
    """Knobs as numbers, in the order of their dataclass."""
    return [float(getattr(knobs, f.name)) for f in fields(knobs)]


def policy_of(engine: Engine) -> str:
    """How an engine forms its batches, where the user does not say."""
    return "chunked-prefill" if engine.has_mixed_steps else "prefill-first"


def batching_of(technique: Technique, given: Mapping[str, float], engine: Engine) -> Batching:
    """A policy's switches; an engine that reserves whole answers does so under any policy."""
    knobs: Batching = knobs_of(technique, given)
    if engine.reserves_output and not knobs.reserves_output:
        knobs = knobs_of(technique, {**given, "reserves_output": True})
    return knobs

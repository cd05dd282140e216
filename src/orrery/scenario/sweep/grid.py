"""Swept settings: ``tp=1,2,4`` is a setting and its values, and several of them make a grid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from orrery.base.errors import ScenarioError, nearest
from orrery.scenario.fields import BY_NAME
from orrery.scenario.knobs import SEATS
from orrery.scenario.schema import Scenario, read_scenario

MAX_POINTS = 100_000
"""More runs than that are a slip of the keyboard."""

DEFAULT = "default"
"""The value that leaves a setting out."""

ARRIVALS = frozenset({"concurrency", "users", "rate", "trace"})
"""Ways for requests to arrive: varying one replaces the others (a rate may go with a trace)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One setting, or one knob of a technique, and the values that it takes."""

    key: str
    values: tuple[str, ...]

    @property
    def is_knob(self) -> bool:
        """Whether the key is a knob: ``policy.chunk_tokens``."""
        return "." in self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run of the grid: what is special about it, and its whole scenario."""

    values: Mapping[str, str]
    scenario: Scenario

    @property
    def label(self) -> str:
        """``tp=2 rate=4``."""
        return " ".join(f"{key}={value}" for key, value in self.values.items())

    @property
    def varied(self) -> dict[str, Any]:
        """The settings that vary, numbers as numbers; None where one is left out."""
        return {key: self._read(key, value) for key, value in self.values.items()}

    def _read(self, key: str, value: str) -> Any:
        if value.casefold() == DEFAULT:
            return None
        if "." in key:
            return float(value)
        return value if key in ("slo", "knob") else getattr(self.scenario, key)


def read_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Axes as people write them, KEY=V1,V2,… each; ScenarioError says what to write."""
    axes = tuple(_axis(text) for text in texts)
    keys = [axis.key for axis in axes]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise ScenarioError(f"sweep: {twice[0]} is given twice; write all its values in one list.")
    return axes


def _axis(text: str) -> Axis:
    key, equals, rest = text.partition("=")
    key = key.strip().removeprefix("--").replace("-", "_")
    values = tuple(dict.fromkeys(v.strip() for v in rest.split(";" if ";" in rest else ",") if v.strip()))
    if not equals or not key or not values:
        raise ScenarioError(f"sweep: got {text!r}; write a setting and its values, such as tp=1,2,4.")
    seat, dot, _ = key.partition(".")
    if dot and seat not in SEATS:
        raise ScenarioError(f"sweep: there are no knobs of {seat!r}; write one of {', '.join(SEATS)} before the dot.")
    if not dot and key not in BY_NAME:
        near = nearest(key, BY_NAME, 1)
        hint = f"did you mean {near[0]!r}?" if near else "see `orrery simulate --help`."
        raise ScenarioError(f"sweep: there is no setting {key!r}; {hint}")
    if not dot and "simulate" not in BY_NAME[key].commands:
        raise ScenarioError(f"sweep: {key} is no setting of a simulated run; see `orrery simulate --help`.")
    return Axis(key=key, values=values)


def points_of(scenario: Scenario, axes: Sequence[Axis]) -> tuple[Point, ...]:
    """Every combination, the last axis varying fastest; every value is checked here, before anything runs."""
    count = prod(len(axis.values) for axis in axes)
    if count > MAX_POINTS:
        raise ScenarioError(f"sweep: {count:,} runs are too many; write fewer values, at most {MAX_POINTS:,} in all.")
    found: list[Point] = []
    for values in product(*(axis.values for axis in axes)):
        chosen = {axis.key: value for axis, value in zip(axes, values, strict=True)}
        label = " ".join(f"{key}={value}" for key, value in chosen.items())
        found.append(Point(values=chosen, scenario=read_scenario(_settings(scenario, chosen), where=f"sweep {label}")))
    return tuple(found)


def _settings(scenario: Scenario, chosen: Mapping[str, str]) -> dict[str, Any]:
    """The scenario's settings with the chosen values in place of its own."""
    settings = scenario.written()
    if varied := ARRIVALS & chosen.keys():
        keep = varied | {"trace"} if varied == frozenset({"rate"}) else varied
        settings = {key: value for key, value in settings.items() if key not in ARRIVALS - keep}
    for key, value in chosen.items():
        is_left_out = value.casefold() == DEFAULT
        if "." in key:
            others = [k for k in settings.get("knob", []) if not k.startswith(f"{key}=")]
            settings["knob"] = others if is_left_out else [*others, f"{key}={value}"]
        elif is_left_out:
            settings.pop(key, None)
        elif key == "slo":
            names = {word.partition(":")[0] for word in value.split()}
            settings["slo"] = [o for o in settings.get("slo", []) if o.partition(":")[0] not in names] + [value]
        elif key == "knob":
            settings["knob"] = [*settings.get("knob", []), value]
        else:
            settings[key] = value
    return settings

"""Several designs side by side: their figures, and how far each is from the first, with errors of both cancelled."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError, nearest
from orrery.base.units import percent
from orrery.scenario.fields import BY_NAME
from orrery.scenario.levers.lever import Question
from orrery.scenario.merge import TRAFFIC_KINDS, merged
from orrery.scenario.rl_job import check_is_no_rl
from orrery.scenario.schema import Scenario, read_scenario, refuse_foreign
from orrery.scenario.what_if.difference import Difference, differences
from orrery.scenario.what_if.metrics import METRICS, Metric
from orrery.scenario.what_if.side import Side, side_of

MAX_DESIGNS = 12
"""Designs of one comparison: more are a sweep."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """A design of a comparison; ``difference`` is by metric, of this design over the first."""

    name: str
    side: Side
    difference: Mapping[str, Difference]

    def to_json(self) -> dict[str, Any]:
        """Its figures with intervals, or why it is infeasible, and its differences."""
        apart = {name: d.to_json() | {"words": in_words(d)} for name, d in self.difference.items()}
        return {"name": self.name, **self.side.to_json(), "difference": apart}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DesignsAnswer:
    """Designs in the order in which they were asked."""

    question: Question
    designs: tuple[Design, ...]
    notes: tuple[str, ...]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics that at least one design has."""
        return tuple(m for m in METRICS if any(m.name in d.side.figures for d in self.designs))

    def to_json(self) -> dict[str, Any]:
        """``{"question", "designs": [...], "notes"}``."""
        return {
            "question": self.question,
            "designs": [design.to_json() for design in self.designs],
            "notes": list(self.notes),
        }


@typed
def compare(
    designs: Sequence[Mapping[str, Any] | Scenario],
    *,
    names: Sequence[str] = (),
    is_simulated: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> DesignsAnswer:
    """Two to twelve designs, each a scenario or its settings, all answered by the same command.

    The command is ``train`` for training jobs, ``plan`` where designs have ``max_devices``, ``simulate`` where
    ``is_simulated``, else ``estimate``. A difference is a figure over that of the first design, less one; its 80 %
    interval counts once what both have of the same error. ScenarioError for designs that are not of one kind.
    """
    if not 2 <= len(designs) <= MAX_DESIGNS:
        raise ScenarioError(f"compare: got {len(designs)} designs; give 2 to {MAX_DESIGNS} (more: `orrery sweep`).")
    if names and len(names) != len(designs):
        raise ScenarioError(f"names: got {len(names)} for {len(designs)} designs; give one for each, or none.")
    scenarios = [d if isinstance(d, Scenario) else read_scenario(d) for d in designs]
    question = question_of(scenarios, is_simulated=is_simulated)
    for design, scenario in zip(designs, scenarios, strict=True):
        if not isinstance(design, Scenario):
            refuse_unread(question, scenario, design)
    sides = list[Side]()
    on_progress(0, len(scenarios))
    for done, scenario in enumerate(scenarios, start=1):
        sides.append(side_of(question, scenario))
        on_progress(done, len(scenarios))
    first = sides[0]
    called = names or [_called(first.settings, side.settings) for side in sides]
    return DesignsAnswer(
        question=question,
        designs=tuple(
            Design(name=name, side=side, difference={} if side is first else differences(first, side))
            for name, side in zip(called, sides, strict=True)
        ),
        notes=tuple(dict.fromkeys(note for side in sides for note in side.notes)),
    )


def changed(base: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Settings with those of a text on top; ``rate=4`` replaces a concurrency."""
    return merged(base, settings_in(text))


def settings_in(text: str) -> dict[str, Any]:
    """Settings of a text such as ``device=h200-sxm tp=8``.

    ScenarioError where a part is no NAME=VALUE or names no setting.
    """
    own = dict[str, Any]()
    for part in shlex.split(text):
        name, sign, value = part.partition("=")
        key = name.removeprefix("--").replace("-", "_")
        if not sign or not value:
            raise ScenarioError(f"with: got {part!r}; write NAME=VALUE, such as device=h200-sxm.")
        if key not in BY_NAME:
            near = nearest(key, BY_NAME) or ("device", "tp", "weights")
            raise ScenarioError(f"with: {name!r} is no setting; write {' or '.join(near)}.")
        own[key] = [*own.get(key, []), value] if BY_NAME[key].kind == "words" else value
    if not own:
        raise ScenarioError("with: got nothing; write NAME=VALUE, such as device=h200-sxm.")
    return own


def in_words(difference: Difference) -> str:
    """Such as ``12 % lower (80 %: 7 to 18)``; ``within the interval`` where the interval holds no difference."""
    if difference.frac == 0.0:
        return "the same"
    low, high = difference.low_80, difference.high_80
    size = percent(abs(difference.frac))
    way = "lower" if difference.frac < 0 else "higher"
    if low is None or high is None:
        return f"{size} {way}"
    if not difference.is_sure:
        return (
            f"{size} {way}, within the interval (80 %: {percent(low, is_signed=True)} to "
            f"{percent(high, is_signed=True)})"
        )
    near, far = sorted((abs(low), abs(high)))
    return f"{size} {way} (80 %: {near * 100:.0f} to {far * 100:.0f})"


def question_of(scenarios: Sequence[Scenario], *, is_simulated: bool) -> Question:
    """The command that answers all of these. ScenarioError where they are not of one kind."""
    kinds = {_kind(one) for one in scenarios}
    if len(kinds) > 1:
        raise ScenarioError(
            f"compare: the designs are {' and '.join(sorted(kinds))}; give designs of one kind "
            "(training jobs have global_batch, searches have max_devices)."
        )
    (kind,) = kinds
    if kind == "training jobs":
        return "train"
    if kind == "searches":
        return "plan"
    return "simulate" if is_simulated else "estimate"


def refuse_unread(question: Question, scenario: Scenario, settings: Mapping[str, Any]) -> None:
    """ScenarioError where a setting that was written for a design is not read by what answers it."""
    refuse_foreign(question, settings)
    if question == "train":
        check_is_no_rl(scenario, settings)


def _kind(scenario: Scenario) -> str:
    if scenario.global_batch is not None:
        return "training jobs"
    return "deployments" if scenario.max_devices is None else "searches"


def _called(base: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """A design's label: its settings that differ from the first's, in order; the first by its model and device."""
    apart = {k: own.get(k) for k in (*own, *base) if own.get(k) != base.get(k)}
    if not apart:
        return f"{own.get('model', '')} on {own.get('device', '')}"
    return ", ".join(f"{k} {_written(v)}" for k, v in apart.items() if k in own or k not in TRAFFIC_KINDS)


def _written(value: Any) -> str:
    if value is None:
        return "not given"
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

"""Sources of a report: a scenario file, or the JSON that a command printed."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_text
from orrery.base.user_text import json_value
from orrery.reports.kinds import COMMANDS, SIGNS, Kind
from orrery.scenario.fields import BY_NAME
from orrery.scenario.file import settings_in
from orrery.scenario.objectives import read_objectives
from orrery.scenario.schema import Scenario, read_scenario

WHAT = "scenario file, or what a command printed with --json"

MAX_BYTES = 100_000_000
"""Maximum size of an answer (bytes): one value per request of a million requests takes less."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """The question of a report, and the answer where a file or the command that reports already holds it."""

    kind: Kind
    scenario: Scenario
    over: tuple[str, ...] = ()  # what a sweep varies
    plain: Mapping[str, Any] | None = None  # the answer as its command printed it
    where: str = ""  # the file
    answer: object = None  # of this very question, where it was just given; else it is asked again

    @property
    def is_simulated(self) -> bool:
        """Whether plans are held against a simulation, as percentiles need."""
        plans: Sequence[Mapping[str, Any]] = (self.plain or {}).get("plans") or ()
        requested = any(o.percent for o in read_objectives(self.scenario.slo))
        return self.kind == "plan" and (requested or any("simulated" in plan for plan in plans))

    @property
    def command(self) -> str:
        """The line that asks the same again."""
        words = ["orrery", *COMMANDS[self.kind]]
        words += ["--simulate"] if self.is_simulated else []
        for key, value in self.scenario.written().items():
            words += BY_NAME[key].typed(value)
        for axis in self.over:
            words += ["--sweep", axis]
        return shlex.join(words)


def read_source(path: Path, kind: str = "", over: Sequence[str] = ()) -> Source:
    """The question in ``path``; ScenarioError says what is wrong with it and what to write."""
    requested = _checked(kind)
    text = read_user_text(path, WHAT, MAX_BYTES)
    if text.lstrip()[:1] in ("{", "["):
        return _from_json(path, text, requested, over)
    try:
        settings = settings_in(text, path)
    except ScenarioError as error:
        raise ScenarioError(f"{error} Nor is it what a command printed with --json.") from None
    scenario = read_scenario(settings, where=str(path))
    found = requested or ("sweep" if over else _guessed(path, scenario))
    if found == "sweep" and not over:
        raise ScenarioError("sweep: nothing varies; write --sweep KEY=V1,V2 beside it, such as --sweep tp=1,2,4.")
    if over and found != "sweep":
        raise ScenarioError(f"sweep: is for --as sweep, and this is --as {found}; leave one of them out.")
    return Source(kind=found, scenario=scenario, over=tuple(over), where=str(path))


def _checked(kind: str) -> Kind | None:
    if not kind:
        return None
    if kind not in get_args(Kind):
        raise ScenarioError(f"as: got {kind!r}; write one of {', '.join(get_args(Kind))}.")
    return cast(Kind, kind)


def _guessed(path: Path, scenario: Scenario) -> Kind:
    """The one command that reads every setting of a scenario; ScenarioError where there are several."""
    keys = list(scenario.written())
    fitting = [c for c in ("plan", "estimate", "simulate", "train") if all(c in BY_NAME[k].commands for k in keys)]
    kinds = [k for c in fitting for k in (("train", "train-plan") if c == "train" else (c,))]
    if len(kinds) == 1:
        return cast(Kind, kinds[0])
    why = "several questions can be asked of it" if kinds else "no one command reads all of its settings"
    raise ScenarioError(f"{path}: {why}; say which with --as {'|'.join(kinds or get_args(Kind))}.")


def _from_json(path: Path, text: str, requested: Kind | None, over: Sequence[str]) -> Source:
    """The question that stands beside an answer, and the answer."""
    read = json_value(text, path, "give what a command printed with --json")
    if not isinstance(read, dict):
        raise ScenarioError(f"{path}: holds a list; give the object that a command printed with --json.")
    plain = cast("dict[str, Any]", read)
    if "error" in plain:
        raise ScenarioError(f"{path}: holds an error and no answer: {_message(plain['error'])}")
    kind: Kind | None = next((k for k, keys in SIGNS.items() if all(key in plain for key in keys)), None)
    settings = plain.get("settings")
    if not isinstance(settings, dict) or (kind is None and "infeasible" not in plain):
        raise ScenarioError(
            f"{path}: is no answer of orrery that names its question (a key 'settings'); run the command again with "
            "--json, or give its scenario file."
        )
    scenario = read_scenario(cast("dict[str, Any]", settings), where=f"{path}: settings")
    if requested and kind and requested != kind:
        raise ScenarioError(f"as: {path} holds the answer of --as {kind}, not of --as {requested}; leave --as out.")
    if over:
        raise ScenarioError(f"sweep: {path} is an answer already; give a scenario file to sweep.")
    axes: list[str] = [str(a) for a in plain.get("sweep") or ()]
    found: Kind = kind or requested or _guessed(path, scenario)
    return Source(kind=found, scenario=scenario, over=tuple(axes), plain=plain, where=str(path))


def _message(error: Any) -> str:
    return str(cast("dict[str, Any]", error).get("message", error)) if isinstance(error, dict) else str(error)

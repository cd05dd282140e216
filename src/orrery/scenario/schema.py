"""The door: what a user may ask, checked in one place, with every mistake answered at once."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, ValidationError

from orrery.base.errors import ScenarioError, nearest
from orrery.scenario.fields import BY_NAME, Setting
from orrery.scenario.schema_serving import ServingScenario
from orrery.scenario.schema_training import TrainingScenario


class Scenario(TrainingScenario, ServingScenario):
    """What a user asks: a deployment and its traffic, or a training job; blank means: take the documented default."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    def written(self) -> dict[str, Any]:
        """The settings that were given, as plain values, in the order of the help page."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self.model_dump(exclude_defaults=True).items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def merged(scenario: Scenario | None, settings: Mapping[str, Any]) -> Scenario:
    """A scenario with settings on top, which override its own."""
    return read_scenario({**(scenario.written() if scenario else {}), **settings})


def read_scenario(settings: Mapping[str, Any], where: str = "") -> Scenario:
    """The scenario these settings describe. ScenarioError lists everything wrong with them, a line each."""
    plain = {key.replace("-", "_"): value for key, value in settings.items() if value is not None}
    try:
        return Scenario.model_validate(plain)
    except ValidationError as error:
        prefix = f"{where}: " if where else ""
        lines = [prefix + _sentence(e["type"], e["loc"], e["msg"], e["input"]) for e in error.errors()]
        raise ScenarioError("\n".join(dict.fromkeys(lines))) from None


def _sentence(kind: str, loc: tuple[int | str, ...], message: str, got: Any) -> str:
    """What, what was got, and what to write."""
    name = str(loc[0]) if loc else ""
    detail = message.removeprefix("Value error, ")
    if kind == "extra_forbidden":
        near = nearest(name, BY_NAME, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(BY_NAME)}."
        return f"There is no setting {name!r}; {hint}"
    if not name or name not in BY_NAME:
        return f"{detail}."
    setting = BY_NAME[name]
    if kind == "value_error" and "truth value" not in detail:
        return f"{name}: got {_short(got)}; {detail}."
    return f"{name}: got {_short(got)}; write {setting.expects}, such as {_example(setting)}."


def _example(setting: Setting) -> str:
    return f"{setting.name} = {setting.example}"


def _short(got: Any) -> str:
    said = repr(got)
    return said if len(said) <= 60 else said[:57] + "…"

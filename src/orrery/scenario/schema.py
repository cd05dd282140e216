"""The door: what a user may ask, checked in one place, with every mistake answered at once."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.catalog.workloads import get_workload
from orrery.scenario.fields import BY_NAME
from orrery.scenario.names import by_position, canonical, renamed
from orrery.scenario.schema_cache_size import CacheSizeScenario
from orrery.scenario.schema_cold_start import ColdStartScenario
from orrery.scenario.schema_diffusion import DiffusionScenario, ImageNetworkScenario, PoolingScenario, SpeechScenario
from orrery.scenario.schema_money import MoneyScenario
from orrery.scenario.schema_reasoning import ReasoningScenario
from orrery.scenario.schema_rl import RlScenario
from orrery.scenario.schema_serving import ServingScenario
from orrery.scenario.schema_training import TrainingScenario
from orrery.scenario.schema_training_techniques import TechniqueScenario
from orrery.scenario.setting import Setting
from orrery.scenario.validation_errors import validation_errors


class Scenario(
    RlScenario,
    TechniqueScenario,
    TrainingScenario,
    ReasoningScenario,
    CacheSizeScenario,
    ColdStartScenario,
    SpeechScenario,
    ImageNetworkScenario,
    PoolingScenario,
    DiffusionScenario,
    MoneyScenario,
    ServingScenario,
):
    """A user's scenario: a deployment with its traffic, or a training job; a blank takes the documented default."""

    def written(self) -> dict[str, Any]:
        """The settings that were given, as plain values, in the order of the help page."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self.model_dump(exclude_defaults=True).items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def merged(scenario: Scenario | None, settings: Mapping[str, Any]) -> Scenario:
    """A scenario with settings on top, which override its own."""
    return read_scenario({**(scenario.written() if scenario else {}), **settings})


@typed
def read_scenario(settings: Mapping[str, Any], where: str = "") -> Scenario:
    """The scenario these settings describe. ScenarioError lists everything wrong with them, a line each."""
    plain = {key.replace("-", "_"): value for key, value in settings.items() if value is not None}
    plain = by_position(renamed(plain, BY_NAME))
    if isinstance(name := plain.get("workload"), str):
        plain = {**get_workload(name).settings(), **plain}
    try:
        return Scenario.model_validate(plain)
    except ValidationError as error:
        raise validation_errors(error, BY_NAME, where) from None


def refuse_foreign(command: str, settings: Mapping[str, Any], reads: frozenset[str] = frozenset()) -> None:
    """ScenarioError where a keyword is of neither the command nor those whose settings it ``reads``.

    A scenario is a deployment that several commands read, each what it knows; a keyword is written for one command.
    """
    for key, value in settings.items():
        setting = BY_NAME.get(canonical(key, BY_NAME))
        if setting is None or value is None or setting.commands & (reads | {command}):
            continue  # unknown names are refused where settings are read
        raise ScenarioError(f"{setting.name}: {command} takes no {setting.name}; {_takers(setting)}. Leave it out.")


def _takers(setting: Setting) -> str:
    """The commands that take a setting, as the end of a sentence."""
    *others, last = (f"`orrery {name}`" for name in sorted(setting.commands))
    return f"{', '.join(others)} and {last} do" if others else f"{last} does"

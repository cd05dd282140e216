"""Keywords that belong to other commands: refused, and what takes them is named.

A scenario is a deployment that several commands read, each what it knows; a keyword is written for one command.
"""

from collections.abc import Mapping
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.scenario.fields import BY_NAME
from orrery.scenario.names import canonical
from orrery.scenario.setting import Setting


def refuse_foreign(command: str, settings: Mapping[str, Any], reads: frozenset[str] = frozenset()) -> None:
    """ScenarioError where a setting is of neither the command nor those whose settings it ``reads``."""
    for key, value in settings.items():
        setting = BY_NAME.get(canonical(key, BY_NAME))
        if setting is None or value is None or setting.commands & (reads | {command}):
            continue  # unknown names are refused where settings are read
        raise ScenarioError(f"{setting.name}: {command} takes no {setting.name}; {_takers(setting)}. Leave it out.")


def _takers(setting: Setting) -> str:
    """The commands that take a setting, as the end of a sentence."""
    *others, last = (f"`orrery {name}`" for name in sorted(setting.commands))
    return f"{', '.join(others)} and {last} do" if others else f"{last} does"

"""The same question in a terminal."""

from collections.abc import Mapping
from typing import Any

from orrery.reports.kinds import Kind
from orrery.reports.source import Source
from orrery.scenario.fields import BY_NAME
from orrery.scenario.schema import read_scenario
from orrery.web.named import UPLOADED


def command(kind: Kind, settings: Mapping[str, Any]) -> str:
    """The line that asks it; uploaded files stand by their own name, settings that the command does not take are left
    out."""
    inputs = {name: _bare(value) for name, value in settings.items() if kind in BY_NAME[name].commands}
    return Source(kind=kind, scenario=read_scenario(inputs)).command


def _bare(value: Any) -> Any:
    return value.removeprefix(UPLOADED) if isinstance(value, str) else value

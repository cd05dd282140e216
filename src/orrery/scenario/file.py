"""A scenario as a TOML file: one deployment that plans, claims and links can share."""

from pathlib import Path
from typing import Any

import tomli_w

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.base.user_file import read_user_text, user_path
from orrery.base.user_text import toml_tables
from orrery.scenario.schema import Scenario, read_scenario


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a file, not yet checked."""
    return settings_in(read_user_text(path, "scenario file (TOML)"), path)


def settings_in(text: str, path: Path) -> dict[str, Any]:
    """The settings in the text of a file."""
    return toml_tables(text, path, "write lines such as tp = 4")


@typed
def load_scenario(path: Path | str) -> Scenario:
    """The scenario in a file."""
    return read_scenario(read_settings(Path(path)), where=str(path))


@typed
def save_scenario(scenario: Scenario, path: Path | str) -> None:
    """Write what was given; reading it back gives the same scenario."""
    try:
        write_atomically(user_path(path), tomli_w.dumps(scenario.written()))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ScenarioError(f"{str(path)!r}: cannot be written: {why}.") from None

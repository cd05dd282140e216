"""A scenario as a TOML file: one deployment that plans, claims and links can share."""

from pathlib import Path
from typing import Any

import tomli
import tomli_w

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.scenario.schema import Scenario, read_scenario


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a file, not yet checked."""
    try:
        return tomli.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}; give a scenario file (TOML).") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: is not text; a scenario is a TOML file of lines such as tp = 4.") from None
    except ValueError as error:  # TOML's own errors, and numbers too long to read
        raise ScenarioError(f"{path}: not valid TOML: {error}; write lines such as tp = 4.") from None


def load_scenario(path: Path) -> Scenario:
    """The scenario in a file."""
    return read_scenario(read_settings(path), where=str(path))


def save_scenario(scenario: Scenario, path: Path) -> None:
    """Write what was given; reading it back gives the same scenario."""
    try:
        write_atomically(path, tomli_w.dumps(scenario.written()))
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be written: {error.strerror}.") from None

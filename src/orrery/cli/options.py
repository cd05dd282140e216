"""Flags that several commands share, made from the list of settings; values stay text until the door checks them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from orrery.base.errors import ScenarioError
from orrery.scenario.fields import SETTINGS
from orrery.scenario.setting import DEPLOYMENTS, Setting

if TYPE_CHECKING:
    from orrery.scenario.schema import Scenario

F = TypeVar("F", bound=Callable[..., Any])


def as_json(function: F) -> F:
    """``--json``: one object on standard output, nothing else there."""
    return click.option("--json", "is_json", is_flag=True, help="One JSON object on standard output, SI units.")(
        function
    )


def in_jobs(function: F) -> F:
    """``--jobs``: processes of this machine for independent parts."""
    return click.option(
        "--jobs",
        type=click.IntRange(1, 4096),
        default=1,
        metavar="N",
        help="Processes for independent parts (default 1).",
    )(function)


def on_ray(function: F) -> F:
    """``--ray``: a cluster to run independent parts on."""
    return click.option(
        "--ray",
        is_flag=False,
        flag_value="auto",
        default="",
        metavar="[ADDRESS]",
        help="Run the parts on a Ray cluster: its address, or local to start one here.",
    )(function)


def with_files(function: F) -> F:
    """``--scenario``, ``--save-scenario`` and ``--json``."""
    function = as_json(function)
    for flag, name, help in (
        ("--save-scenario", "save_scenario", "Write these settings to a TOML file."),
        ("--scenario", "scenario_file", "Read settings from a TOML file; flags override it."),
    ):
        path = click.Path(path_type=Path)
        function = click.option(flag, name, type=path, metavar="FILE", help=help)(function)
    return function


def scenario_flags(command: str) -> Callable[[F], F]:
    """All settings that ``command`` reads, ``--scenario``, ``--save-scenario`` and ``--json``."""

    def add(function: F) -> F:
        return setting_flags(with_files(function), [s for s in SETTINGS if command in s.commands])

    return add


def deployment_flags(function: F) -> F:
    """Every setting of a deployment or a training job, ``--scenario``, ``--save-scenario`` and ``--json``."""
    return setting_flags(with_files(function), [s for s in SETTINGS if DEPLOYMENTS & s.commands])


def setting_flags(function: F, settings: Sequence[Setting]) -> F:
    """A flag for each of these settings."""
    for setting in reversed(settings):
        if setting.kind == "switch":
            both = f"{setting.flag}/--no-{setting.flag.removeprefix('--')}"
            function = click.option(both, setting.name, default=None, help=setting.help)(function)
            continue
        function = click.option(
            setting.flag, setting.name, metavar=setting.metavar, help=setting.help, multiple=setting.kind == "words"
        )(function)
    return function


def _given(flags: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The flags that were typed."""
    for key, value in flags.items():
        if isinstance(value, tuple):
            value = list(cast(tuple[str, ...], value)) or None
        if value is not None:
            yield key, value


def typed_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were typed, as settings."""
    return dict(_given(flags))


def scenario_from(flags: Mapping[str, Any], file: Path | None, save: Path | None) -> "Scenario":
    """The scenario of a file with the flags on top; saved again where asked."""
    from orrery.scenario.file import read_settings, save_scenario
    from orrery.scenario.merge import merged
    from orrery.scenario.schema import read_scenario

    given = dict(_given(flags))
    settings: dict[str, Any] = {
        key.replace("-", "_"): value for key, value in (read_settings(file) if file else {}).items()
    }
    overridden = merged(settings, given)
    scenario = read_scenario(overridden, where=str(file) if file and not given else "")
    if not overridden:
        raise ScenarioError("Nothing is asked yet: give --model and --device, or --scenario FILE.toml; see --help.")
    if save:
        save_scenario(scenario, save)
    return scenario

"""Flags of a question that has a door of its own, made from its list of settings."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from orrery.cli.options import with_files
from orrery.scenario.setting import Setting

F = TypeVar("F", bound=Callable[..., Any])


def question_flags(settings: Sequence[Setting]) -> Callable[[F], F]:
    """Every setting, ``--scenario``, ``--save-scenario`` and ``--json``."""

    def add(function: F) -> F:
        function = with_files(function)
        for setting in reversed(settings):
            is_switch = setting.kind == "switch"
            shown: dict[str, Any] = {"is_flag": True, "default": None} if is_switch else {"metavar": setting.metavar}
            function = click.option(setting.flag, setting.name, help=setting.help, **shown)(function)
        return function

    return add


def settings_from(flags: Mapping[str, Any], file: Path | None) -> dict[str, Any]:
    """The settings of a file with the flags on top; values stay as typed until the door checks them."""
    from orrery.scenario.file import read_settings

    return (read_settings(file) if file else {}) | {key: value for key, value in flags.items() if value is not None}

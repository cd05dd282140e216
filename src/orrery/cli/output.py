"""Where answers go: JSON and results to standard output, notes and progress to standard error."""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from orrery.cli.in_flags import in_flags_of

if TYPE_CHECKING:
    from rich.console import Console

    from orrery.scenario.ask import InfeasibleAnswer


PIPED_COLUMNS = 140
"""Width of tables where nobody says how wide the paper is."""


def print_json(answer: Mapping[str, Any]) -> None:
    """One object; not-a-number never leaves the house."""
    print(json.dumps(answer, allow_nan=False, indent=2))


def print_notes(notes: Iterable[str]) -> None:
    """Print the assumptions beside the answer, one a line."""
    for note in dict.fromkeys(notes):
        print(f"note: {note}", file=sys.stderr)


def console() -> "Console":
    """Standard output as a rich console; plain where it is no terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED_COLUMNS
    return Console(file=sys.stdout, highlight=False, width=width)


def print_infeasible(answer: "InfeasibleAnswer", is_json: bool) -> int:
    """Say what is missing; the exit code is 3."""
    if is_json:
        print_json(answer.to_json())
    print_notes(answer.notes)
    print(f"Infeasible: {_as_typed(str(answer.infeasible))}", file=sys.stderr)
    return 3


def _as_typed(message: str) -> str:
    """The message in flags, unless settings were read from a file."""
    context = click.get_current_context(silent=True)
    if context is None or any(str(value).endswith(".toml") for value in context.params.values()):
        return message
    return in_flags_of(message, context.command)

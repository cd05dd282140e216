"""Groups whose commands are modules, imported when they are called, so that help is instant."""

from collections.abc import Mapping, Sequence
from importlib import import_module

import click

from orrery.base.errors import nearest
from orrery.scenario.names import canonical


def meant(command: click.Command, arguments: Sequence[str]) -> list[str]:
    """Arguments with flags under the names that the command has: ``--tensor-parallel-size`` is ``--tp``."""
    own = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known = {option.removeprefix("--").replace("-", "_") for option in own}
    found: list[str] = []
    for i, argument in enumerate(arguments):
        if argument == "--":
            return [*found, *arguments[i:]]
        flag, equals, value = argument.partition("=")
        name = canonical(flag.removeprefix("--").replace("-", "_"), known)
        is_other = flag.startswith("--") and flag not in own and f"--{name.replace('_', '-')}" in own
        found.append(f"--{name.replace('_', '-')}{equals}{value}" if is_other else argument)
    return found


class LazyGroup(click.Group):
    """Commands by name; each is the ``command`` of the module that ``module`` and its name make."""

    lines: Mapping[str, str] = {}
    """Name -> the line in the list of commands."""

    module: str = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lines:
            return None
        found: click.Command = import_module(f"{self.module}{cmd_name.replace('-', '_')}").command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.lines and not args[0].startswith("-"):
            near = nearest(args[0], self.lines, 1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Commands: {', '.join(self.lines)}."
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, rest if command is None else meant(command, rest)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lines.items()))

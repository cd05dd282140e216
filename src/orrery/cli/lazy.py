"""Groups whose commands are modules, imported when they are called, so that help is instant."""

from collections.abc import Mapping
from importlib import import_module

import click

from orrery.base.errors import nearest


class LazyGroup(click.Group):
    """Commands by name; each is the ``COMMAND`` of the module that ``module`` and its name make."""

    lines: Mapping[str, str] = {}
    """Name -> the line in the list of commands."""

    module: str = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lines:
            return None
        found: click.Command = import_module(f"{self.module}{cmd_name}").COMMAND
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.lines and not args[0].startswith("-"):
            near = nearest(args[0], self.lines, 1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Commands: {', '.join(self.lines)}."
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lines.items()))

"""Write docs/command-line.md from the command line itself; with ``--check``, fail when the page is stale."""

import argparse
import sys
from pathlib import Path

import click

from orrery.cli.main import cli

PAGE = Path(__file__).resolve().parents[1] / "docs" / "command-line.md"

HEAD = """# Command line

This page is made from the commands themselves (`make docs`), and a test checks that it is current.

All commands take `--json`: one object on standard output, in SI units, with names as in the code; notes and progress
go to standard error. The exit code is 0 when done, 2 for input that makes no sense, 3 when what is asked cannot be
done (then the answer says what is needed, what there is, and the smallest change). See
[scenario files](scenario-files.md) for `--scenario` and `--save-scenario`, for sizes such as `1k` and `200ms`, and for
other tools' names that are taken as flags.

Tables follow the terminal's width (`COLUMNS` sets another): where it is narrow, columns that matter less stand below
their row.

Shell completion of commands and flags, for the shell that is open now or in its start-up file:

```sh
eval "$(_ORRERY_COMPLETE=bash_source orrery)"    # bash, ~/.bashrc
eval "$(_ORRERY_COMPLETE=zsh_source orrery)"     # zsh, ~/.zshrc
_ORRERY_COMPLETE=fish_source orrery | source     # fish, ~/.config/fish/completions/orrery.fish
```
"""


def page() -> str:
    """The whole page: the list of commands, then the help of each."""
    context = click.Context(cli, info_name="orrery", max_content_width=100, terminal_width=100)
    parts = [HEAD, section("orrery", cli.get_help(context))]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if command is not None:
            parts += sections(name, command, context)
    return "\n".join(parts)


def sections(name: str, command: click.Command, parent: click.Context) -> list[str]:
    """The help of a command, then of those that it groups."""
    context = click.Context(command, parent=parent, info_name=name, max_content_width=100, terminal_width=100)
    below: list[str] = []
    if isinstance(command, click.Group):
        for key in command.list_commands(context):
            if (one := command.get_command(context, key)) is not None:
                below += sections(key, one, context)
    return [section(context.command_path, command.get_help(context)), *below]


def section(title: str, text: str) -> str:
    """One command's help under its name."""
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return f"## {title}\n\n```text\n{lines}\n```\n"


def main() -> int:
    """Write the page, or with ``--check`` say whether the one in docs is current."""
    parser = argparse.ArgumentParser(description="Write docs/command-line.md from the command line.")
    parser.add_argument("--check", action="store_true", help="fail when the page in docs is stale")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    print("docs/command-line.md is stale; run `make docs`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

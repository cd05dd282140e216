"""Messages about settings, said in the flags that the reader typed instead of the fields of a scenario file."""

import re
from collections.abc import Sequence

import click

VALUE = r"""(?:\["(?P<listed>[^"\]]+)"\]|"(?P<double>[^"]+)"|'(?P<single>[^']+)'|(?P<bare>[\w./-]+(?<![.])))"""
ASSIGNMENT = re.compile(r"(?<!= )\b(?P<name>[a-z][a-z0-9_]*) = " + VALUE + r"(?!\S* = )")
SUBJECT = re.compile(r"^(?P<names>[a-z][a-z0-9_]*(?:(?:, | and )[a-z][a-z0-9_]*)*):")
NAME = re.compile(r"[a-z][a-z0-9_]*")


def in_flags(message: str, cli: click.Group, arguments: Sequence[str]) -> str:
    """``message`` with ``field = value`` as ``--field value``, where the command has that flag and reads no file."""
    command = _command(cli, arguments)
    if command is None or any(a.partition("=")[2].endswith(".toml") or a.endswith(".toml") for a in arguments):
        return message
    return in_flags_of(message, command)


def in_flags_of(message: str, command: click.Command) -> str:
    """``message`` with ``field = value`` as ``--field value``, where the command has that flag."""
    flags = {p.name: p for p in command.params if isinstance(p, click.Option) and p.name}

    def written(found: re.Match[str]) -> str:
        option = flags.get(found["name"])
        value = found["listed"] or found["double"] or found["single"] or found["bare"]
        if option is None:
            return found[0]
        if value in ("true", "false") and (option.is_flag or option.secondary_opts):
            names = option.opts if value == "true" else option.secondary_opts
            return names[0] if names else found[0]
        return f"{option.opts[0]} {value}"

    def subject(found: re.Match[str]) -> str:
        names = [name for name in NAME.findall(found["names"]) if name != "and"]
        if not all(name in flags for name in names):
            return found[0]
        return NAME.sub(lambda name: flags[name[0]].opts[0] if name[0] in flags else name[0], found[0])

    return ASSIGNMENT.sub(written, SUBJECT.sub(subject, message))


def _command(cli: click.Group, arguments: Sequence[str]) -> click.Command | None:
    """The command that a line names, if it names one."""
    found: click.Command = cli
    for argument in arguments:
        if not isinstance(found, click.Group):
            break
        if not argument.startswith("-"):
            inner = found.get_command(click.Context(found), argument)
            if inner is None:
                return None
            found = inner
    return None if isinstance(found, click.Group) else found

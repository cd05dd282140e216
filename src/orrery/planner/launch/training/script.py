"""Start of a framework: a program, its arguments, and a configuration file beside it.

Paths are the user's: they stay environment variables, and the command stops with a sentence where one is not set.
"""

import shlex
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """Why a framework cannot run a layout, in one sentence that says what to write instead."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One framework's start."""

    program: str  # shell words that are run on every rank
    arguments: tuple[str, ...] = ()  # shell words, one line each
    flags: tuple[str, ...] = ()  # those of the arguments that are flags
    config_keys: tuple[str, ...] = ()  # dotted, of the configuration file or the overrides
    config_name: str = ""
    config: str = ""  # text of the file; "" where everything is on the command line
    environment: tuple[tuple[str, str], ...] = ()
    needs: tuple[tuple[str, str], ...] = ()  # environment variables that the user sets, and what they hold
    launcher: Literal["torchrun", "accelerate"] = "torchrun"


@dataclass(slots=True)
class Draft:
    """Arguments being written."""

    arguments: list[str] = field(default_factory=list[str])
    flags: list[str] = field(default_factory=list[str])
    keys: list[str] = field(default_factory=list[str])
    needs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def add(self, flag: str, *values: object) -> None:
        """A flag, with its values quoted for a shell; an empty one is none."""
        self.flags.append(flag)
        self.arguments.append(" ".join([flag, *(shlex.quote(str(v)) for v in values if v != "")]))

    def variable(self, flag: str, name: str, what: str, *, default: str = "") -> None:
        """A flag whose value is the user's environment variable."""
        self.flags.append(flag)
        self.arguments.append(f"{flag} {self.need(name, what, default=default)}")

    def need(self, name: str, what: str, *, default: str = "") -> str:
        """The shell word of an environment variable, which must be set where it has no default."""
        if default:
            return f'"${{{name}:-{default}}}"'
        if (name, what) not in self.needs:
            self.needs.append((name, what))
        return f'"${name}"'

    def override(self, key: str, word: str) -> None:
        """``key=value`` of a dotted configuration; ``word`` is a shell word already."""
        self.keys.append(key)
        self.arguments.append(f"{key}={word}")

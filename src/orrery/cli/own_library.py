"""Shared options of commands on new papers: the library's file, source addresses, and papers as JSON."""

import sys
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from orrery.evidence.feed.entry import Skipped
    from orrery.evidence.feed.store import Store

YEARS = range(1900, 2200)
"""In which papers are written and looked for."""

MAX_SAID = 20
"""Papers left out that are named on standard error; --json lists every one."""

F = TypeVar("F", bound=Callable[..., Any])


def with_library(function: F) -> F:
    """``--library FILE``."""
    help = "The library's file (default: $ORRERY_LIBRARY, else one in your data folder)."
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option("--library", "library", type=kind, metavar="FILE", help=help)(function)


def with_certificates(function: F) -> F:
    """``--ca FILE``."""
    help = "Certificates to trust, for a mail server of your own."
    kind = click.Path(path_type=Path, exists=True, dir_okay=False)
    return click.option("--ca", "ca", type=kind, metavar="FILE", help=help)(function)


def with_addresses(*names: str) -> Callable[[F], F]:
    """``--arxiv-url`` and the like: mirrors in place of the sources themselves; and the pause between requests."""

    def decorated(function: F) -> F:
        for name in reversed(names):
            flag, help = f"--{name}-url", f"An address in place of that of {name}, such as a mirror's."
            function = click.option(flag, metavar="URL", help=help, default="")(function)
        help = "Seconds between requests; a source's own rule is the least (a mirror has none)."
        return click.option("--pause", type=click.FloatRange(min=0), metavar="S", help=help)(function)

    return decorated


def with_page_year(function: F) -> F:
    """``--page-year``."""
    help = "The year of dates without one on a saved page (default: worked out)."
    return click.option("--page-year", type=click.IntRange(YEARS[0], YEARS[-1]), metavar="YEAR", help=help)(function)


def open_library(path: Path | None) -> "Store":
    """The library, made where it is not there yet."""
    from orrery.evidence.feed.store import Store
    from orrery.evidence.library import library_file

    return Store(library_file(path))


def day(text: str) -> date:
    """A date as it is typed: ``2026-11-22``, or ``7d`` for seven days ago."""
    if text.endswith("d") and text[:-1].isdecimal() and len(text) < 6:
        return date.today() - timedelta(days=int(text[:-1]))
    try:
        found = datetime.strptime(text, "%Y-%m-%d").date()
        if found.year not in YEARS:
            raise ValueError
        return found
    except ValueError:
        raise click.BadParameter(f"{text!r} is no date; write 2026-11-22, or 7d for seven days ago.") from None


def say_skipped(skipped: "Iterable[Skipped]") -> None:
    """One line for whatever was left out; of many the first ones and how many more."""
    listed = list(skipped)
    for one in listed[:MAX_SAID]:
        print(f"skipped: {one}", file=sys.stderr)
    if (num_more := len(listed) - MAX_SAID) > 0:
        print(f"skipped: {num_more} more; --json lists every one.", file=sys.stderr)

"""``--report FILE`` of a command: its answer as one page for a decision maker, then why."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from orrery.reports.kinds import Kind
    from orrery.reports.report import Report
    from orrery.scenario.schema import Scenario

ONLY_SERVING = "is of text that an engine serves step by step; leave it out here (--json has the numbers)."

F = TypeVar("F", bound=Callable[..., Any])


def with_report(function: F) -> F:
    """``--report``: the answer as a file."""
    return click.option(
        "--report",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write a report to .html or .pdf: the answer, money and risk on its first page, then why.",
    )(function)


def check_report(path: Path | None, source: Path | None = None, *, refused: str = "") -> None:
    """Refuse, before anything is computed, what cannot be written; ``refused`` is why there is no report of this."""
    if path is None:
        return
    from orrery.base.errors import ScenarioError
    from orrery.reports.write import check_paths

    if refused:
        raise ScenarioError(f"report: {refused}")
    check_paths((path,), source, is_needed=False, name="report")


def write_report(
    path: Path | None,
    kind: "Kind",
    scenario: "Scenario",
    plain: Any = None,
    over: Sequence[str] = (),
    *,
    answer: object = None,
) -> None:
    """Write the report of an answer, which ``plain`` holds as the command prints it with ``--json``.

    Without ``answer`` the kinds that work from more than the JSON ask again.
    """
    if path is None:
        return
    from orrery.reports.make import report_of
    from orrery.reports.source import Source

    write_made(path, report_of(Source(kind=kind, scenario=scenario, plain=plain, over=tuple(over), answer=answer)))


def write_made(path: Path, report: "Report") -> None:
    """Write a report that is made."""
    from orrery.reports.write import write

    write(report, (path,))

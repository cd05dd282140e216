"""A report as files, whole or not at all."""

from collections.abc import Sequence
from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.drawing.hatch import as_lines
from orrery.reports.page import page
from orrery.reports.pdf import pdf
from orrery.reports.report import Report

SUFFIXES = (".html", ".pdf")


def check_paths(out: Sequence[Path], source: Path | None, *, is_needed: bool, name: str = "out") -> None:
    """Refuse, before anything is computed, what cannot be written.

    ``source`` is the file that is asked about, ``name`` the option that the paths came with.
    """
    if is_needed and not out:
        raise ScenarioError("out: is missing; write --out report.html (or .pdf), or --json for the content as data.")
    for path in out:
        if path.suffix.casefold() not in SUFFIXES:
            raise ScenarioError(
                f"{name}: {path.name!r} is nothing that a report is written as; end it in .html or .pdf."
            )
        if path.is_dir():
            raise ScenarioError(f"{name}: {path} is a folder; write the name of a file, such as report.html.")
        if not path.parent.is_dir():
            raise ScenarioError(f"{name}: there is no folder {path.parent}; make it first, or write another name.")
        if source is not None and path.exists() and source.exists() and path.samefile(source):
            raise ScenarioError(f"{name}: {path} is the source itself; write another name.")


def write(report: Report, out: Sequence[Path]) -> None:
    """Write the page, and print it where a PDF is asked for."""
    if not out:
        return
    html = page(report)
    for path in out:
        write_atomically(path, html if path.suffix.casefold() == ".html" else pdf(as_lines(html)))

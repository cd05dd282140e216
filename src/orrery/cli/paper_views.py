"""A paper's entry in the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.text import Text

from orrery.base.units import percent
from orrery.cli.output import console
from orrery.cli.scatter import raster
from orrery.cli.sheet import Sheet
from orrery.evidence.amounts import amount, input_name, input_text, metric_name
from orrery.evidence.find.crossing import Point, Reading
from orrery.evidence.find.entry import Mechanism, PaperEntry
from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.judge.page import reported
from orrery.evidence.words import INPUTS

if TYPE_CHECKING:
    from rich.console import Console

    from orrery.evidence.feed.entry import Classification, Entry
    from orrery.evidence.feed.record import Record

MAX_CLAIMS = 20
"""Claims with a line of their own; --json lists every one."""

MAX_MISSING = 6
"""Reasons for what is not predicted, likewise."""

PLOT_COLUMNS = 48
STYLES = {"reproduced": "green", "not reproduced": "red"}


def print_entry(entry: PaperEntry, records: "Sequence[Record]" = ()) -> None:
    """The whole entry, most important first."""
    out = console()
    out.print(f"[bold]{escape(entry.title)}[/]")
    out.print(
        f"{entry.key}, {entry.published or entry.year}; {entry.layer}, {entry.kind}, {entry.fit}",
        style="dim",
        markup=False,
    )
    out.print(", ".join(entry.authors) or "authors unknown", style="dim", markup=False)
    out.print(", ".join(entry.organisations) or "organisation unknown", style="dim", markup=False)
    for name, url in entry.links.items():
        out.print(f"  {url}" + ("" if name in ("paper", "arXiv") else f"  ({name})"), markup=False, style="dim")
    _print_records(out, records)
    _head(out, "Method")
    out.print(entry.mechanism, markup=False)
    _print_techniques(out, entry)
    if entry.use or entry.no_use:
        _head(out, "Use it on your deployment")
        out.print(entry.use or f"No command takes it: {entry.no_use}.", markup=False, soft_wrap=True)
    _head(out, "Sensitivity")
    if entry.curve is None:
        out.print(f"Not known: {entry.no_curve}.", markup=False)
    else:
        print_reading(out, entry.curve)
    _print_claims(out, entry)
    _print_open(out, entry)
    _print_related(out, entry)


def _print_records(out: "Console", records: "Sequence[Record]") -> None:
    """Print the words of each source, with its name before them."""
    for r in records:
        words = ", ".join(part for part in (r.organisation, r.words) if part)
        out.print(f"{r.name}: {words or 'knows it'}", style="dim", markup=False)
        for url in dict.fromkeys(url for url in (r.code_url, r.discussion_url or r.url) if url):
            out.print(f"  {url}", style="dim", markup=False)


def _head(out: "Console", words: str) -> None:
    out.print(f"\n[bold]{words}[/]")


def _print_techniques(out: "Console", entry: PaperEntry) -> None:
    """Print a paper's gains and costs, then those of the techniques that it uses."""
    _head(out, "Benefits and costs")
    if entry.gains or entry.costs:
        _print_gains(out, entry)
    for technique in entry.techniques:
        out.print(f"[bold]{escape(technique.name)}[/] ({escape(technique.extension_point)})")
        _print_gains(out, technique)
    if entry.other_mechanisms:
        too = " too" if entry.techniques else ""
        out.print(f"Modelled{too}: {', '.join(entry.other_mechanisms)}.", markup=False)
    if entry.modules:
        modules = ", ".join(module.removeprefix("orrery.") for module in entry.modules)
        out.print(f"Where: {modules}.", style="dim", markup=False)
    else:
        out.print("Nothing in orrery models it yet.")


def _print_gains(out: "Console", of: PaperEntry | Mechanism) -> None:
    out.print(f"  [green]gains[/] {escape(of.gains)}")
    out.print(f"  [red]costs[/] {escape(of.costs)}")


def print_reading(out: "Console", curve: Reading) -> None:
    """The sentence, then a line for each value of the input: | is where nothing is gained, o what is predicted."""
    out.print(curve.sentence, markup=False)
    against = f" against {curve.baseline}" if curve.baseline else ""
    over = f"over {input_name(curve.input)} ({INPUTS[curve.input].removesuffix(', by comma')})"
    out.print(f"  {metric_name(curve.metric)}{against}, {over}", style="dim", markup=False)
    names = [input_text(curve.input, point.value) for point in curve.points]
    ends = [point.predicted for point in curve.points] + ([] if curve.neutral is None else [curve.neutral])
    for name, point in zip(names, curve.points, strict=True):
        line = Text(f"  {name:>{max(map(len, names))}} [")
        line.append(_drawn(point, curve.neutral, (min(ends), max(ends))), style=_colour(point))
        out.print(line.append(f"] {amount(point.predicted, curve.unit)}"))


def _drawn(point: Point, neutral: float | None, ends: tuple[float, float]) -> str:
    places = [point.predicted] if neutral is None else [neutral, point.predicted]
    marks = "o" if neutral is None else "|o"
    return raster(places, [0.0] * len(places), marks, (PLOT_COLUMNS, 0), ends, (0.0, 0.0))[0].ljust(PLOT_COLUMNS + 1)


def _colour(point: Point) -> str:
    return {True: "green", False: "red", None: "default"}[point.is_better]


def _print_claims(out: "Console", entry: PaperEntry) -> None:
    """Print the claims: reported, predicted, and the reason where there is no prediction."""
    _head(out, "Claims: reported vs predicted")
    if entry.missing:
        out.print(f"Not modeled: {entry.missing}", markup=False)
    shown = sorted(entry.claims, key=lambda j: (j.predicted is None, j.claim.origin != "abstract"))[:MAX_CLAIMS]
    if not shown:
        out.print("It claims no number.")
        return
    table = Sheet()
    for column in ("claim", "of what", "reported"):
        table.add_column(column, justify="left", wraps=True)
    table.add_column("predicted")
    table.add_column("ratio")
    table.add_column("verdict", justify="left")
    for j in shown:
        table.add_row(*_cells(j), Text(_verdict(j), style=STYLES.get(j.verdict, "dim")))
    out.print(table)
    if (more := len(entry.claims) - len(shown)) > 0:
        out.print(f"… {more} more; --json lists every one")
    if any(map(_is_waiting, entry.claims)):
        out.print(f"Run what is not run yet: orrery reproduce {entry.key}", markup=False)
    if not entry.missing:
        _print_missing(out, entry)


def _verdict(j: ClaimResult) -> str:
    """The verdict, where there is one yet."""
    return "not run yet" if _is_waiting(j) else j.verdict


def _is_waiting(j: ClaimResult) -> bool:
    """Whether the claim can be run again and what comes out is not on file."""
    return j.predicted is None and not j.because


def _cells(j: ClaimResult) -> tuple[str, ...]:
    against = f" against {j.claim.baseline}" if j.claim.baseline else ""
    return (
        j.claim.id,
        metric_name(j.claim.metric) + against,
        reported(j),
        "" if j.predicted is None else amount(j.predicted, j.claim.unit),
        "" if j.ratio is None else f"{j.ratio:.2f}",
    )


def _print_missing(out: "Console", entry: PaperEntry) -> None:
    """Why claims are not predicted, each reason once."""
    reasons: dict[str, list[str]] = {}
    for j in entry.claims:
        if j.predicted is None and j.because:
            reasons.setdefault(j.because, []).append(j.claim.id)
    for because, claims in list(reasons.items())[:MAX_MISSING]:
        out.print(f"Not predicted ({', '.join(claims)}): {because}", markup=False)
    if (more := len(reasons) - MAX_MISSING) > 0:
        out.print(f"… {more} more reasons; --json lists every one")


def _print_open(out: "Console", entry: PaperEntry) -> None:
    if entry.unstated:
        _head(out, "Unstated settings")
    for what, assumed in entry.unstated.items():
        out.print(f"- {what.replace('_', ' ')}: {assumed}", markup=False)


def _print_related(out: "Console", entry: PaperEntry) -> None:
    if entry.related:
        _head(out, "Related")
    for other in entry.related:
        shared = f"; both: {', '.join(other.shared_techniques)}" if other.shared_techniques else ""
        out.print(f"- [bold]{escape(other.key)}[/]  {escape(other.title)}")
        out.print(f"  because: {', '.join(other.because)}{shared}", style="dim", markup=False)


def print_fetched(entry: "Entry", classification: "Classification", records: "Sequence[Record]" = ()) -> None:
    """A paper without a file: its own words, and what is understood of them with how sure that is."""
    out = console()
    out.print(f"[bold]{escape(entry.title)}[/]")
    parts = (entry.id, str(entry.published or ""), entry.organisation, f"from {entry.source}")
    out.print(", ".join(part for part in parts if part), style="dim", markup=False)
    if entry.url:
        out.print(f"  {entry.url}", style="dim", markup=False)
    _print_records(out, records)
    _head(out, "Its abstract")
    out.print(entry.abstract or "Not known.", markup=False)
    _head(out, "What is understood of it, and how sure that is")
    if classification.layer:
        out.print(f"layer: {classification.layer} ({percent(classification.layer_confidence_frac)})", markup=False)
    for name, confidence in classification.techniques:
        out.print(f"resembles: {name} ({percent(confidence)})", markup=False)
    for claim in classification.claims:
        out.print(f"claims: {claim.text} ({percent(claim.confidence_frac)})", markup=False)
    out.print("Nothing of it is modeled: it has no paper file yet.", style="dim")

"""Number formats as a person reads them: the list, and one of them with its values and its error."""

from rich.console import Console

from orrery.base.units import figures
from orrery.cli.output import console
from orrery.cli.scatter import can_plot, plot
from orrery.cli.sheet import Sheet
from orrery.scenario.formats import FormatList, Shown

HEIGHT = 14
VALUES_A_LINE, LONG_VALUES_A_LINE, LONG_CHARACTERS = 8, 4, 7
"""Values on a line of the table of codes, fewer where they are long, and the letters of the longest short value."""

TITLES = {
    "format": "Formats: an element and its scales",
    "element": "Elements",
    "spelling": "Spellings: one of each family; write ELEMENT/SHARE:SCALE for any scaled format",
}


def print_list(found: FormatList) -> None:
    """A table for each group."""
    out = console()
    for group, title in TITLES.items():
        drawn = Sheet("name", "bits", "largest", "normal", "smallest", "decades", "values", title=title)
        drawn.add_column("element", justify="left", wraps=True, minor=1)
        drawn.add_column("source", justify="left", wraps=True, minor=2)
        for row in (r for r in found.rows if r.group == group):
            e = row.element
            numbers = (
                ("", "", "", "", "", "mixture")
                if e is None
                else (
                    figures(e.highest, 2 if e.highest >= 1e6 else 5),
                    "" if e.smallest_normal is None else f"{e.smallest_normal:.2g}",
                    f"{e.smallest:.2g}",
                    f"{e.range_decades:.1f}",
                    figures(e.num_values, 5 if e.num_values < 1e5 else 2),
                    e.name,
                )
            )
            drawn.add_row(row.name, f"{row.bits_per_element:.4g}", *numbers, row.source)
        out.print(drawn)
    out.print("normal, smallest: the smallest normal number, and the smallest above zero")


def print_shown(found: Shown) -> None:
    """Facts, values, and the relative error over the largest binades."""
    out, f = console(), found.format
    out.print(f"[bold]{f.name}[/]: {f.title}", highlight=False)
    facts = Sheet("", has_header=False)
    facts.add_column("", justify="left", wraps=True)
    for name, value in _facts(found):
        facts.add_row(name, value)
    out.print(facts)
    if found.values:
        _print_values(out, found.values)
    if found.curve and can_plot(out):
        xs, ys = [x for x, _ in found.curve], [100.0 * y for _, y in found.curve]
        labels = ("binades below the largest", "relative error, %: the worst number nearby, not scaled")
        columns = min(out.width, 100) - len(labels[0]) - 6
        drawn = plot(xs, ys, ["*"] * len(xs), labels, columns, HEIGHT, ticks=".3g")
        out.print(drawn, markup=False, highlight=False)


def _facts(found: Shown) -> list[tuple[str, str]]:
    f, e = found.format, found.element
    rows = [("bits an element", f"{f.bits_per_element:.6g}, of which scales {f.scaling.bits_per_element:.4g}")]
    if e is not None:
        normal = "" if e.smallest_normal is None else f", smallest normal {e.smallest_normal:.6g}"
        rows += [
            ("element", f"{e.name}: {e.source}"),
            (
                "numbers",
                f"{e.num_values:,} values from {e.lowest:.6g} to {e.highest:.6g}{normal}, smallest above zero "
                f"{e.smallest:.6g} ({e.range_decades:.1f} decades)",
            ),
        ]
    rows += [("scales" if i == 0 else "", line) for i, line in enumerate(found.scales)]
    rows += list(found.edges.items())
    use = "weights alone; unpacked to 16 bits and multiplied as " if f.weight_only else ""
    if f.rates:
        rows.append(("rates, best first", use + ", ".join(f.rates)))
    if found.native_on:
        rows += [(f"multiplied as {rate} by", ", ".join(names)) for rate, names in _by_rate(found.native_on).items()]
    if f.aliases:
        rows.append(("also called", ", ".join(f.aliases)))
    return [*rows, ("defined by", f.source)] if f.source else rows


def _by_rate(native_on: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for device, rate in native_on.items():
        found.setdefault(rate, []).append(device)
    return found


def _print_values(out: Console, values: tuple[float, ...]) -> None:
    """Codes in rows: a small format whole, the positive half of one of eight bits that is symmetric."""
    negative = list(values[len(values) // 2 :])
    is_mirrored = len(values) > 32 and all(
        a == -b or (a != a and b != b) for a, b in zip(values[1 : len(values) // 2], negative[1:], strict=True)
    )
    shown = values[: len(values) // 2] if is_mirrored else values
    words = [_number(value) for value in shown]
    is_long = max(map(len, words)) > LONG_CHARACTERS
    a_line = LONG_VALUES_A_LINE if is_long else VALUES_A_LINE
    title = "Values by code" + (", the rest with the sign turned" if is_mirrored else "")
    drawn = Sheet("code", *(f"+{i}" for i in range(a_line)), title=title, left=0)
    for start in range(0, len(shown), a_line):
        drawn.add_row(f"{start}", *words[start : start + a_line])
    out.print(drawn)


def _number(value: float) -> str:
    return "NaN" if value != value else f"{value:.6g}"

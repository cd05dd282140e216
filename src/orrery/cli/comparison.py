"""Formats side by side as a person reads them: signal, speed, one against the other, and integers against floats."""

from collections.abc import Callable, Iterator
from pathlib import Path

from orrery.base.units import figures, percent, text
from orrery.cli.output import console
from orrery.cli.quantize import decibels
from orrery.cli.scatter import LETTERS, can_plot, lettered
from orrery.cli.sheet import Sheet
from orrery.scenario.compare_formats import Compared, Comparison

HEIGHT = 14


def print_comparison(found: Comparison) -> None:
    """Signal, speed, pictures of one against the other, and integers against floats by crest factor."""
    out = console()
    out.print(_signal(found))
    if any(r.circuit for _, r in _rows(found)):
        out.print(_circuits(found))
    if found.base:
        out.print(_speeds(found))
        out.print(_casts(found))
    if any(r.served for _, r in _rows(found)):
        out.print(_served(found))
    if can_plot(out):
        for label, points in _pictures(found):
            drawn = lettered(points, (label, "SQNR, dB"), min(out.width, 100), HEIGHT)
            out.print(drawn, markup=False, highlight=False)
    if found.by_crest:
        out.print(_crests(found))


def _rows(found: Comparison) -> list[tuple[str, Compared]]:
    """The yardstick, then what was asked, each with its letter."""
    rows = [(LETTERS[i % len(LETTERS)], r) for i, r in enumerate(found.results)]
    return [("", found.base), *rows] if found.base else rows


def _pictures(found: Comparison) -> Iterator[tuple[str, list[tuple[str, float, float]]]]:
    """Gain against signal: memory where no device is known, else speed; formats that lack either are not drawn."""
    gains: dict[str, Callable[[Compared], float | None]] = {"memory": lambda r: 16.0 / r.bits_per_element}
    if found.base:
        gains = {
            "prefill": lambda r: r.speed.prefill.speedup_ratio if r.speed else None,
            "decode": lambda r: r.speed.decode.speedup_ratio if r.speed else None,
        }
    if any(r.circuit for r in found.results):
        circuits = [(letter, r.circuit, r.sqnr_db) for letter, r in _rows(found) if letter]
        tables = [(letter, float(c.luts), db) for letter, c, db in circuits if c and c.luts and db is not None]
        if len(tables) > 1:
            yield "lookup tables of a multiply-accumulate", tables
    for name, gain in gains.items():
        every = [(letter, gain(r), r.sqnr_db) for letter, r in _rows(found) if letter]
        points = [(letter, x, y) for letter, x, y in every if x is not None and y is not None]
        if len(points) > 1:
            yield f"x bf16, {name}", points


def _signal(found: Comparison) -> Sheet:
    names = list(dict.fromkeys(name for r in found.results for name in r.errors))
    sqnr = (f"SQNR {Path(n).name}" for n in names)
    drawn = Sheet("", "format", "bits", *sqnr, "largest error", "to zero", left=2)
    drawn.add_column("front", justify="left")
    for letter, r in _rows(found):
        first = next(iter(r.errors.values()), None)
        drawn.add_row(
            letter,
            r.format,
            f"{r.bits_per_element:.4g}",
            *(decibels(r.errors[n].sqnr_db) if n in r.errors else "-" for n in names),
            f"{first.max_abs_error:.3g}" if first else "-",
            percent(first.zeros_frac, 1) if first else "-",
            ", ".join(r.fronts),
            style=None if letter else "dim",
        )
    return drawn


def _circuits(found: Comparison) -> Sheet:
    drawn = Sheet("", "format", "lookup tables", "blocks", title="One multiply-accumulate on an FPGA", left=2)
    for letter, r in _rows(found):
        if c := r.circuit:
            drawn.add_row(
                letter, r.format, figures(c.luts), figures(c.dsps) if c.dsps else "-", style=None if letter else "dim"
            )
    return drawn


def _speeds(found: Comparison) -> Sheet:
    headings = ("", "format", "runs as", "rate", "TFLOP/s", "prefill", "decode", "memory")
    drawn = Sheet(*headings, title=f"On {found.device}, against bf16", left=4)
    for letter, r in _rows(found):
        if (s := r.speed) is None:
            drawn.add_row(letter, r.format, "no kernel known")
            continue
        drawn.add_row(
            letter,
            r.format,
            s.runs_as,
            s.rate or "vector",
            figures(s.peak_flops_per_s / 1e12, 4),
            f"x {s.prefill.speedup_ratio:.2f}",
            f"x {s.decode.speedup_ratio:.2f}",
            f"x {s.memory_ratio:.2f}",
            style=None if letter else "dim",
        )
    return drawn


def _casts(found: Comparison) -> Sheet:
    headings = ("", "format", "prefill product", "its cast", "decode product", "its cast", "bytes each", "scales each")
    drawn = Sheet(*headings, title="Products, and casting their activations", left=2)
    for letter, r in _rows(found):
        if (s := r.speed) is None:
            continue
        drawn.add_row(
            letter,
            r.format,
            text(s.prefill.product_s, "s"),
            text(s.prefill.cast_s, "s") if s.prefill.cast_s else "-",
            text(s.decode.product_s, "s"),
            text(s.decode.cast_s, "s") if s.decode.cast_s else "-",
            f"{s.cast_bytes_per_element:.3g}" if s.cast_bytes_per_element else "-",
            f"1/{1 / s.scales_per_element:.0f}" if s.scales_per_element else "-",
            style=None if letter else "dim",
        )
    return drawn


def _served(found: Comparison) -> Sheet:
    drawn = Sheet("", "format", "output tokens/s", "TTFT", "TPOT", title="The model, served", left=2)
    for letter, r in _rows(found):
        if e := r.served:
            drawn.add_row(
                letter,
                r.format,
                f"{e.output_tokens_per_s:,.0f}",
                text(e.ttft_s, "s"),
                text(e.tpot_s, "s"),
                style=None if letter else "dim",
            )
    return drawn


def _crests(found: Comparison) -> Sheet:
    crests = list(dict.fromkeys(row.crest_factor for row in found.by_crest))
    rows: dict[str, list[str]] = {}
    for row in found.by_crest:
        rows.setdefault(row.format, []).append(f"{row.sqnr_db:.1f}")
    title = (
        f"SQNR in dB by crest factor (largest over RMS) of blocks of {found.crest_block_elements}, all formats scaled "
        "by such blocks"
    )
    drawn = Sheet("format", *(f"{c:g}" for c in crests), title=title)
    for name, cells in rows.items():
        drawn.add_row(name, *cells)
    return drawn

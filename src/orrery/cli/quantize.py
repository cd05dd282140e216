"""``orrery quantize``: what storing tensors in few bits costs in signal."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.base.units import percent
from orrery.cli.question import question_flags, settings_from
from orrery.scenario.fields_quantize import QUANTIZE_SETTINGS

if TYPE_CHECKING:
    from orrery.cli.sheet import Sheet
    from orrery.scenario.quantize_answer import QuantizeAnswer
    from orrery.scenario.quantize_layers import Measurement
    from orrery.scenario.quantize_pairs import Pair
    from orrery.scenario.rotation_fit import RotationFit

EXAMPLES = """\b
Examples:
  orrery quantize weights outliers --formats nvfp4,mxfp4,mxfp8,int4/128:fp16
  orrery quantize model.safetensors --formats nvfp4,fp8_block --tensors '*mlp*' --out errors.csv
  orrery quantize layer.npy --formats mxfp4 --recipes gptq,hadamard+gptq --activations inputs.npy --json
  orrery quantize normal --formats e2m1/16:e4m3/tensor,e3m2/32:ue8m0,posit8_1 --rounding stochastic --seed 7"""

SUFFIXES = (".csv", ".parquet", ".json")

TENSORS_SHOWN = 20
"""Largest number of tensors on the page, those that lose most first; ``--json`` and ``--out`` have them all."""

LAYERS_SHOWN = 8
"""Largest number of layers on the page that recipes were tried on, in the order of the file."""

HEIGHT = 14


@click.command("quantize", epilog=EXAMPLES)
@click.argument("sources", metavar="SOURCE…", nargs=-1)
@question_flags(QUANTIZE_SETTINGS)
@click.option(
    "--out",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the errors of every tensor to .csv or .parquet, or the answer to .json.",
)
def command(
    sources: tuple[str, ...],
    scenario_file: Path | None,
    save_scenario: Path | None,
    is_json: bool,
    out: tuple[Path, ...],
    **flags: Any,
) -> None:
    """Tensors rounded to number formats and back: bits, bytes and signal lost, by tensor and in all.

    SOURCE is a .npy, .npz or .safetensors file, or numbers that are drawn: normal, student_t, laplace, uniform,
    weights or outliers.
    """
    check_suffixes(out)
    settings = settings_from(flags, scenario_file) | ({"sources": sources} if sources else {})
    from orrery.cli.output import print_json, print_notes
    from orrery.cli.progress import bar
    from orrery.scenario.fields_quantize import QUANTIZE_BY_NAME
    from orrery.scenario.inputs import read_asked
    from orrery.scenario.quantize import QuantizeQuestion, quantize

    if save_scenario:
        read_asked(QuantizeQuestion, settings, QUANTIZE_BY_NAME).save(save_scenario)
    with bar("tensors x formats") as tell:
        answer = quantize(on_progress=tell, **settings)
    plain = answer.to_json()
    for path in out:
        write(plain, path)
    if is_json:
        print_json(plain)
    else:
        print_quantized(answer)
    print_notes(answer.notes)


def check_suffixes(out: Sequence[Path]) -> None:
    """Refuse a file that does not say what to write, before anything is worked out for it."""
    from orrery.base.errors import ScenarioError

    for path in out:
        if path.suffix.casefold() not in SUFFIXES:
            raise ScenarioError(f"out: {path.name!r} does not say what to write; end it in {', '.join(SUFFIXES)}.")
        if not path.parent.is_dir():
            raise ScenarioError(f"out: there is no folder {path.parent}; make it, or write elsewhere.")


def write(answer: dict[str, Any], path: Path) -> None:
    """The answer as JSON, or a row for every tensor and format; whole or not at all."""
    import json

    from orrery.base.files import write_atomically
    from orrery.cli.simulate_report.parquet import parquet_bytes
    from orrery.cli.simulate_report.rows import csv_text
    from orrery.cli.sweep import columns_of

    if path.suffix.casefold() == ".json":
        write_atomically(path, json.dumps(answer, allow_nan=False))
        return
    rows = [row | {"shape": "x".join(map(str, row["shape"]))} for row in answer["results"]]
    columns = columns_of(rows)
    write_atomically(path, parquet_bytes(columns) if path.suffix.casefold() == ".parquet" else csv_text(columns))


def print_quantized(answer: "QuantizeAnswer") -> None:
    """All tensors together, each of them, recipes, and bits against signal as a picture."""
    from orrery.cli.output import console
    from orrery.cli.scatter import LETTERS, can_plot, lettered

    out = console()
    out.print(_totals(answer))
    if shares := [r.wide_frac for r in answer.results if r.wide_frac]:
        blocks = [r.wide_blocks_frac for r in answer.results if r.wide_frac]
        out.print(
            f"Columns in 16 bits: {percent(min(shares), 2)} to {percent(max(shares), 2)} of a tensor (sorted, "
            f"{percent(min(blocks), 2)} to {percent(max(blocks), 2)} of its blocks of 128: --wide-frac of "
            "--activations int4+int8)."
        )
    if can_plot(out) and len(answer.totals) > 1:
        points = [
            (mark, t.bits_per_element, t.error.sqnr_db) for mark, t in zip(LETTERS * 9, answer.totals, strict=False)
        ]
        out.print(lettered(points, ("bits", "SQNR, dB"), min(out.width, 100), HEIGHT), markup=False, highlight=False)
    if len({(r.source, r.tensor) for r in answer.results}) > 1:
        out.print(_tensors(answer))
    for tensor in list(dict.fromkeys(p.tensor for p in answer.pairs))[:LAYERS_SHOWN]:
        out.print(_pairs(tensor, [p for p in answer.pairs if p.tensor == tensor]))
    layers = [] if answer.pairs else list(dict.fromkeys(m.tensor for m in answer.layers))
    for tensor in layers[:LAYERS_SHOWN]:
        out.print(_layer(tensor, [m for m in answer.layers if m.tensor == tensor]))
    if fit := answer.fitting:
        out.print(_fitting(fit), markup=False)
    for d in answer.declined:
        where = f"{d.tensor} in {d.format}" if d.format else d.tensor
        out.print(f"declined: {where} ({d.source}): {d.reason}", markup=False)


def _fitting(fit: "RotationFit") -> str:
    from orrery.base.units import text

    count = fit.end_to_end_devices
    node = f"each of {count} devices" if count else "every device of a node, which it does not have"
    return (
        f"Learning the rotations of {fit.model} on {fit.device}: {text(fit.layer_wise_bytes, 'bytes')} layer by layer "
        f"({fit.layer_wise_devices} device{'s' * (fit.layer_wise_devices > 1)}); end to end "
        f"{text(fit.end_to_end_bytes, 'bytes')} on {node}."
    )


def _totals(answer: "QuantizeAnswer") -> "Sheet":
    from orrery.base.units import text
    from orrery.cli.scatter import LETTERS
    from orrery.cli.sheet import Sheet

    numbers = answer.totals[0].error.num_elements
    count = max(t.num_tensors for t in answer.totals)
    title = f"{count} tensor{'s' * (count > 1)}, {numbers:,} numbers; * keeps most at its bits"
    headings = ("", "format", "bits", "size", "SQNR", "largest error", "mean error", "to zero")
    drawn = Sheet(*headings, title=title, left=2)
    for i, t in enumerate(answer.totals):
        e = t.error
        drawn.add_row(
            LETTERS[i % len(LETTERS)] + "*" * t.is_best,
            t.format,
            f"{t.bits_per_element:.4g}",
            text(t.size_bytes, "bytes"),
            decibels(e.sqnr_db),
            f"{e.max_abs_error:.3g}",
            f"{e.mean_error:.2g}",
            percent(e.zeros_frac, 2),
        )
    return drawn


def decibels(sqnr_db: float) -> str:
    """``20.4 dB``; what loses nothing says so."""
    return "exact" if sqnr_db == float("inf") else f"{sqnr_db:.1f} dB"


def _tensors(answer: "QuantizeAnswer") -> "Sheet":
    """SQNR of each tensor in each format, those that lose most first."""
    from orrery.cli.sheet import Sheet

    formats = [t.format for t in answer.totals]
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for r in answer.results:
        rows.setdefault((r.source, r.tensor), {})[r.format] = r.error.sqnr_db
    worst = sorted(rows, key=lambda key: min(rows[key].values()))
    more = f", {TENSORS_SHOWN} of {len(rows)}" if len(rows) > TENSORS_SHOWN else ""
    drawn = Sheet("tensor", *formats, title=f"SQNR by tensor in dB, most lost first{more}")
    for key in worst[:TENSORS_SHOWN]:
        found = rows[key]
        drawn.add_row(key[1], *(decibels(found[f]).removesuffix(" dB") if f in found else "-" for f in formats))
    return drawn


def _pairs(tensor: str, pairs: "Sequence[Pair]") -> "Sheet":
    """Pairs of formats on one layer, each with its best recipe; marked where none keeps more at its cost."""
    from orrery.cli.sheet import Sheet

    title = f"Output of {tensor} by formats; b: keeps most at its bits, t: at its tables"
    drawn = Sheet("", "weights", "activations", "bits", "tables", "recipe", "output SQNR", title=title, left=3)
    shown = [p for p in pairs if p.is_best_of_bits or p.is_best_of_luts] if len(pairs) > TENSORS_SHOWN else pairs
    for p in shown:
        marks, tables = (
            "b" * p.is_best_of_bits + "t" * p.is_best_of_luts,
            "-" if p.num_luts is None else str(p.num_luts),
        )
        sqnr = decibels(p.output_sqnr_db)
        drawn.add_row(marks, p.weights, p.activations, f"{p.bits:.4g}", tables, p.recipe, sqnr)
    return drawn


def _over_seeds(m: "Measurement") -> str:
    """The signal kept, and its ends where there were several seeds."""
    mean = decibels(m.output_sqnr_db)
    if m.num_seeds == 1:
        return mean
    return f"{mean} ({decibels(m.output_sqnr_low_db)} to {decibels(m.output_sqnr_high_db)})"


def _layer(tensor: str, measured: "Sequence[Measurement]") -> "Sheet":
    """Recipes on one layer, format by format, the least error first."""
    from orrery.base.units import text
    from orrery.cli.sheet import Sheet

    headings = ("format", "recipe", "output SQNR", "weights error", "bytes", "work per token")
    drawn = Sheet(*headings, title=f"Output of {tensor} after a recipe", left=2)
    for m in sorted(measured, key=lambda m: (m.bits_per_element, m.format, -m.output_sqnr_db)):
        drawn.add_row(
            m.format,
            m.recipe,
            _over_seeds(m),
            f"{m.weights_error_frac:.3g}",
            f"+ {text(m.extra_bytes, 'bytes')}" if m.extra_bytes else "-",
            f"+ {text(m.extra_flops_per_token, 'flops')}" if m.extra_flops_per_token else "-",
        )
    return drawn

"""Score devices as if only their data sheets were known, and find the intervals that such devices get.

    python tools/device_left_out.py --data ../shared/data

Every device with measured kernels is left out in turn, and its test rows are predicted with constants of other devices:
of its generation (*siblings*), of other generations by likeness (*new*, what a device file of a new generation gets),
and of other generations evenly. Learned corrections belong to devices and are left out with them. Intervals of *new*
are quantiles over the calibrate rows of generations left out; the one that judges a device is made without its
generation. Serving runs of the same devices are predicted with kernels of other generations; the constants of engines
stay, and these runs had a part in them. Writes ``facts/neighbours.toml`` and its part of the scorecard.
"""

import argparse
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from fit.accuracy_tables import write_tables
from fit.intervals import HELD, LONE_WIDENING, QUANTILES
from orrery.base.cost import Spread
from orrery.base.errors import OrreryError
from orrery.base.files import write_atomically
from orrery.catalog import devices
from orrery.catalog.calibrations import Key, calibrations_for, measured
from orrery.catalog.devices import FOLDER, get_device
from orrery.catalog.neighbours import FILE, average, by_likeness
from orrery.evidence import kernel_rows
from orrery.evidence.accuracy import read_tables
from orrery.evidence.answers import Answers
from orrery.evidence.check import check_table
from orrery.evidence.score import score_errors
from orrery.evidence.split import CALIBRATE, LIKE, SHAPE_COLUMNS, TEST, side
from orrery.evidence.tables import Table, read_table
from orrery.hardware.calibration import Calibration, one_for_all
from orrery.hardware.device import Device
from scorecard_left_out import HEADING, KERNELS, SERVING, left_out_section

SCORECARD = Path(__file__).resolve().parents[1] / "docs" / "scorecard.md"
OPS = ("gemm", "attention_prefill", "attention_decode", "moe", "mla_prefill", "mla_decode")
SMALL = ("norm", "rope", "gated_activation", "add", "embedding")
"""Kernels that only two or three generations were timed in: predicted evenly, scored, and given no interval here."""

WIDTH = 0.5
"""Width of likeness. 0.25 to 1 were tried, with either of its two numbers or both: 28 % less error than evenly at 0.5
and 1, no more than a fiftieth apart."""

FILES = ("gemm", "attention_prefill", "attention_decode", "moe", "mla", "model_layers")
MOST_ROWS = 200
"""Rows of one device, op, format and engine: every group weighs about the same."""

SHIPPED, EVENLY = ("its own kernels", "siblings"), "new, evenly"
"""Ways whose intervals come with the constants, and one that has none of its own."""

METRICS = ("tpot_s", "ttft_s", "latency_s", "output_tokens_per_s")
SEED = 0

Find = Callable[[str], Device]
Entries = Mapping[str, Mapping[Key, Calibration]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Left:
    """Rows of one side of one table in one way of predicting them: measured / predicted and both ends of 80 %."""

    device: np.ndarray
    op: np.ndarray
    ratio: np.ndarray  # measured / predicted
    inside: np.ndarray


def _bare(one: Calibration) -> Calibration:
    return replace(one, residual=None, row_spread=one_for_all)


def without(device: Device, entries: Entries, *, siblings: bool) -> Entries:
    """Measured constants of other devices: those of its generation alone, or of the other generations alone."""
    return {
        name: {key: _bare(one) for key, one in own.items()}
        for name, own in entries.items()
        if name != device.name and (get_device(name).generation == device.generation) == siblings
    }


def evenly(entries: Entries) -> dict[Key, Calibration]:
    """Every generation weighs the same."""
    found: dict[Key, list[Calibration]] = {}
    for name, own in entries.items():
        for key, one in own.items():
            if not one.law:
                found.setdefault(key, []).append(replace(one, fact=None, engine=f"{get_device(name).generation}"))
    joined: dict[Key, Calibration] = {}
    for key, all_of_it in found.items():
        clans = {one.engine: [c.constants for c in all_of_it if c.engine == one.engine] for one in all_of_it}
        sets = [average(clan, [1.0] * len(clan)) for clan in clans.values()]
        joined[key] = replace(all_of_it[0], engine=key[2], constants=average(sets, [1.0] * len(sets)), origin="any")
    return joined


def new(device: Device, entries: Entries) -> dict[Key, Calibration]:
    """Of other generations by likeness; evenly where one generation alone was timed."""
    others = without(device, entries, siblings=False)
    return evenly(others) | by_likeness(device, others, WIDTH, OPS)


def of_siblings(device: Device, entries: Entries) -> dict[Key, Calibration]:
    """Of its generation, with the interval that ships; nothing where no other of it was timed."""
    mine = without(device, entries, siblings=True)
    shipped = calibrations_for("", device.generation)
    found: dict[Key, Calibration] = {}
    for key, one in evenly(mine).items():
        wide = Spread(**{f"{q}_ratio": getattr(one.spread, f"{q}_ratio") ** LONE_WIDENING for q in QUANTILES})
        is_pooled = sum(key in own for own in mine.values()) > 1
        found[key] = replace(one, origin="generation", spread=shipped[key].spread if is_pooled else wide)
    return found


def rows_of(table: Table, wanted: str) -> np.ndarray:
    """Row numbers on one side of the split, at most ``MOST_ROWS`` a group."""
    op, rng = table.words("op"), np.random.default_rng(SEED)
    groups: dict[tuple[str, ...], list[int]] = {}
    names = (table.words("device"), op, table.words("format"), table.words("engine"))
    for one in np.unique(op):
        columns = [table.words(c) for c in SHAPE_COLUMNS.get(LIKE.get(str(one), str(one)), ())]
        for row in np.flatnonzero(op == one):
            if columns and side([str(c[row]) for c in columns]) == wanted:
                groups.setdefault(tuple(str(n[row]) for n in names), []).append(int(row))
    chosen = [rng.choice(g, min(len(g), MOST_ROWS), replace=False) for g in groups.values()]
    return np.sort(np.concatenate(chosen))


def predicted(table: Table, rows: np.ndarray, find: Find) -> Left:
    """The rows by the devices that ``find`` gives for their names; none that beat the data sheet."""
    answers = Answers(len(table))
    kernel_rows.answer(table, rows, answers, find=find)
    time_s, guess_s = table.numbers("time_s"), answers.predicted["time_s"]
    inside = answers.inside("time_s", time_s, 80)
    rows = rows[np.isfinite(guess_s[rows]) & (time_s[rows] >= answers.bound_s[rows])]
    device = np.array([get_device(str(d)).name for d in table.words("device")[rows]])
    return Left(device=device, op=table.words("op")[rows], ratio=(time_s / guess_s)[rows], inside=inside[rows])


def finder(constants: Callable[[Device, Entries], dict[Key, Calibration]]) -> Find:
    """Devices whose constants are those of others."""
    known: dict[str, Device] = {}

    def find(name: str) -> Device:
        device = get_device(name)
        if device.name not in known:
            known[device.name] = replace(device, calibrations=constants(device, measured()))
        return known[device.name]

    return find


def joined(parts: Sequence[Left]) -> Left:
    """Rows of several tables as one."""
    return Left(**{f: np.concatenate([getattr(p, f) for p in parts]) for f in ("device", "op", "ratio", "inside")})


def width_of(left: Left, op: str, generations: np.ndarray, apart_from: str = "") -> dict[str, float] | None:
    """Quantiles of an op's ratios over generations left out, each device weighing the same."""
    mine = (left.op == op) & (generations != apart_from)
    names, counts = np.unique(left.device[mine], return_counts=True)
    if len(names) < 2:
        return None
    weights = np.array([1.0 / dict(zip(names, counts, strict=True))[d] for d in left.device[mine]])
    order = np.argsort(left.ratio[mine])
    place = np.cumsum(weights[order]) / weights.sum()
    values = left.ratio[mine][order]
    at = {name: min(int(np.searchsorted(place, q)), len(values) - 1) for name, q in QUANTILES.items()}
    return {name: float(values[row]) for name, row in at.items()}


def entry(left: Left, keep: np.ndarray, inside: np.ndarray) -> dict[str, float]:
    """Rows, errors, bias and coverage of some rows."""
    score = score_errors(1.0 / left.ratio[keep] - 1.0, inside[keep])
    values = {
        "median": score.median_abs_error_frac,
        "mean": score.mean_abs_error_frac,
        "p90": score.p90_abs_error_frac,
        "bias": score.bias_frac,
        "covered_80": score.covered_80_frac,
    }
    return {"rows": score.rows} | {name: round(value, 4) for name, value in values.items() if value is not None}


def scored(left: Left, inside: np.ndarray, by_device: Sequence[str]) -> dict[str, Any]:
    """By op, over all devices; for some ops by device too."""
    found: dict[str, Any] = {}
    for op in (*OPS, *SMALL):
        mine = left.op == op
        if mine.any():
            found[op] = {"all": entry(left, mine, inside)}
        for device in np.unique(left.device[mine]) if op in by_device else ():
            found[op][str(device)] = entry(left, mine & (left.device == device), inside)
    return found


def kernels(data: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what goes into the accuracy file, intervals by op)."""
    tables = [read_table(data / "kernels" / f"{name}.csv.gz") for name in FILES]
    tests, others = ([rows_of(table, what) for table in tables] for what in (TEST, CALIBRATE))
    finds: dict[str, Find] = {
        "its own kernels": get_device,
        "siblings": finder(of_siblings),
        "new": finder(new),
        EVENLY: finder(lambda device, entries: evenly(without(device, entries, siblings=False))),
    }
    found: dict[str, Any] = {}
    calibrate = joined([predicted(t, rows, finds["new"]) for t, rows in zip(tables, others, strict=True)])
    clans = np.array([get_device(d).generation for d in calibrate.device])
    factor = widening(calibrate, clans)
    for way, find in finds.items():
        left = joined([predicted(t, rows, find) for t, rows in zip(tables, tests, strict=True)])
        inside = left.inside if way in SHIPPED else covered(left, calibrate, clans, factor)
        if way == EVENLY:
            found[way] = scored(left, np.full(len(left.ratio), np.nan), ())
        else:
            found[way] = scored(left, inside, OPS)
        print(way, {op: e["all"] for op, e in found[way].items()}, flush=True)
    widths = {op: width_of(calibrate, op, clans) or {} for op in OPS}
    wide = {op: {name: round(ratio**factor, 4) for name, ratio in width.items()} for op, width in widths.items()}
    print(f"widened {factor:.3f}-fold (log)", flush=True)
    return found, wide


def covered(left: Left, calibrate: Left, clans: np.ndarray, factor: float) -> np.ndarray:
    """Whether each row lies inside the interval that other generations, left out, make; unknown for small kernels."""
    inside = np.full(len(left.ratio), np.nan)
    for op in OPS:
        for device in np.unique(left.device[left.op == op]):
            width = width_of(calibrate, op, clans, get_device(str(device)).generation)
            mine = (left.op == op) & (left.device == device)
            if width:
                low, high = width["low_80"] ** factor, width["high_80"] ** factor
                inside[mine] = (left.ratio[mine] >= low) & (left.ratio[mine] <= high)
    return inside


def widening(calibrate: Left, clans: np.ndarray) -> float:
    """How much wider (log) than the other generations' quantiles an interval must be to hold 80 % of a generation that
    had no part in them: what a handful of generations does not show of the next. Every op and device weighs the same.
    """
    for factor in np.arange(1.0, 3.0, 0.02):
        inside = covered(calibrate, calibrate, clans, float(factor))
        groups = {(o, d) for o, d in zip(calibrate.op, calibrate.device, strict=True) if o in OPS}
        shares = [np.nanmean(inside[(calibrate.op == o) & (calibrate.device == d)]) for o, d in sorted(groups)]
        if np.nanmean(shares) >= HELD:
            return float(factor)
    return float(factor)


def serving(data: Path) -> dict[str, Any]:
    """Serving runs on devices with measured kernels: with them, and with those of other generations."""
    names = {d for d, own in measured().items() if any(key[0] == "attention_decode" for key in own)}
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {name: _copied(name, Path(folder)) for name in names}
        known = {f"left-out-{n}": {**get_device(n).calibrations, **_six(get_device(n))} for n in names}
        devices.calibrations_for = lambda device, *rest: known.get(device) or calibrations_for(device, *rest)
        for way in ("its own kernels", "new"):
            parts = [part for path in sorted((data / "serving").glob("*.csv")) for part in _runs(path, files, way)]
            for metric in METRICS:
                mine = [part for part in parts if part[0] == metric]
                for device in ("all", *sorted({part[1] for part in mine})):
                    some = [p for p in mine if device in ("all", p[1])]
                    left = Left(
                        device=np.array([p[1] for p in some]),
                        op=np.array([p[0] for p in some]),
                        ratio=np.array([p[2] for p in some]),
                        inside=np.array([p[3] for p in some]),
                    )
                    found.setdefault(way, {}).setdefault(metric, {})[device] = entry(
                        left, np.ones(len(some), bool), left.inside
                    )
        devices.calibrations_for = calibrations_for
    return found


def _six(device: Device) -> dict[Key, Calibration]:
    return {key: one for key, one in new(device, measured()).items() if key[0] in OPS}


def _copied(name: str, folder: Path) -> str:
    path = folder / f"left-out-{name}.toml"
    path.write_text((FOLDER / f"{name}.toml").read_text(encoding="utf-8"), encoding="utf-8")
    return str(path)


def _runs(path: Path, files: Mapping[str, str], way: str) -> Iterator[tuple[str, str, float, float]]:
    """(metric, device, measured / predicted, in the interval) of a table's runs, at most ``MOST_ROWS``."""
    table = read_table(path)
    if "device" not in table.columns:
        return
    whose = np.array([_named(str(d)) for d in table.words("device")])
    rows = np.flatnonzero(np.isin(whose, list(files)))
    if not rows.size:
        return
    rows = np.sort(np.random.default_rng(SEED).choice(rows, min(len(rows), MOST_ROWS), replace=False))
    part, whose = table.take(rows), whose[rows]
    if way == "new":
        part = replace(part, columns={**part.columns, "device": np.array([files[d] for d in whose], dtype=object)})
    checked = check_table(part)
    for metric in (m for m in METRICS if m in checked.measured and m in checked.answers.predicted):
        inside = checked.answers.inside(metric, checked.measured[metric], 80)
        for row in np.flatnonzero(checked.scored(metric)):
            ratio = checked.measured[metric][row] / checked.answers.predicted[metric][row]
            yield metric, str(whose[row]), float(ratio), float(inside[row])


def _named(device: str) -> str:
    try:
        return get_device(device).name
    except OrreryError:
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    data = parser.parse_args().data
    found, widths = kernels(data)
    body = {"likeness": {"width": WIDTH}, "spread": widths}
    write_atomically(FILE, f"# made by: python tools/device_left_out.py\n{tomli_w.dumps(body)}")
    retained = dict(read_tables())
    for what, ways in ((KERNELS, found), (SERVING, serving(data))):
        retained |= {f"{what}, {way}": entries for way, entries in ways.items()}
    write_tables(retained)
    write_section(retained)


def write_section(retained: Mapping[str, Any]) -> None:
    """Put the section into the page, in place of the one that is there."""
    page = SCORECARD.read_text(encoding="utf-8")
    place = rf"(?ms)^\n{re.escape(HEADING)}\n.*?(?=^## )"
    if not re.search(place, page):
        page = page.replace("\n## Serving runs\n", f"\n{HEADING}\n\n## Serving runs\n", 1)
    text = "\n".join(left_out_section(retained)) + "\n\n"
    write_atomically(SCORECARD, re.sub(place, lambda _: text, page, count=1))


if __name__ == "__main__":
    main()

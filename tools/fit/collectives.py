"""Fit the constants of collectives to measured tables, report the errors, and write the calibration file.

    python tools/fit/collectives.py --data ../shared/data [--dry-run]

Only rows on the FIT side enter a constant; intervals come from the CALIBRATE side; errors are of the TEST side.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.base.files import write_atomically
from orrery.catalog.devices import get_device
from orrery.evidence.split import CALIBRATE, FIT, TEST, sides
from orrery.evidence.tables import read_table
from orrery.hardware.device import Device
from orrery.network.group import group_of
from orrery.network.plan import candidates
from orrery.network.resolve import library_key

Floats = NDArray[np.float64]
HOME = Path(__file__).parents[2]
FOLDER = HOME / "src/orrery/catalog/facts/calibrations"
VENDOR = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
HIGHEST_RATE_FRAC = 0.98  # no library sends more than its link's stated rate
ENGINES = ("tensorrt-llm", "vllm", "vllm-eager", "nccl-eager")

# Start, and how far (natural logarithm) a constant is expected to lie from it: a weak prior, for rows are few.
VENDOR_START: dict[str, tuple[float, float]] = {
    "launch_s": (4e-6, 1.0),
    "low_latency_step_s": (8e-7, 1.0),
    "low_latency_rate_frac": (0.3, 1.0),
    "bulk_launch_s": (4e-6, 1.5),
    "bulk_step_s": (1.2e-6, 1.0),
    "bulk_rate_frac": (0.85, 0.15),
    "staging_ratio": (0.4, 0.7),
    "pipeline_ratio": (0.5, 1.0),
    "in_switch_launch_s": (1.5e-5, 1.0),
    "in_switch_step_s": (2e-6, 1.0),
    "in_switch_rate_frac": (0.7, 0.2),
    "contention_ratio": (1.5, 0.7),
}
FUSED_START: dict[str, tuple[float, float]] = {
    "launch_s": (3e-6, 1.0),
    "fused_step_s": (7e-7, 1.0),
    "fused_rate_frac": (0.7, 0.5),
    "host_s": (2e-5, 1.0),
}


@dataclass(frozen=True)
class Rows:
    """Rows of one device, collective and library."""

    device: Device
    kind: str
    library: str
    num_devices: NDArray[np.int64]
    per_node: NDArray[np.int64]
    size_bytes: Floats
    time_s: Floats
    side: NDArray[np.str_]

    def take(self, mask: NDArray[np.bool_]) -> "Rows":
        """Only these rows."""
        return Rows(
            self.device, self.kind, self.library, self.num_devices[mask], self.per_node[mask], self.size_bytes[mask],
            self.time_s[mask], self.side[mask],
        )  # fmt: skip

    def on(self, side: str) -> "Rows":
        """Only the rows of one side."""
        return self.take(self.side == side)


def predict_s(rows: Rows, constants: Mapping[str, float]) -> Floats:
    """The model's times for rows, with constants that are still being fitted."""
    out = np.empty(len(rows.time_s))
    for n, per_node in {(int(a), int(b)) for a, b in zip(rows.num_devices, rows.per_node, strict=True)}:
        here = (rows.num_devices == n) & (rows.per_node == per_node)
        size = rows.size_bytes[here]
        group = group_of(rows.kind, n, per_node, rows.device)
        plan = candidates(group, rows.device, constants)
        times = [c.latency_s + c.slope_s_per_byte * size + np.sqrt(c.root_s2_per_byte * size) for c in plan]
        out[here] = np.maximum(np.min(times, axis=0), constants.get("host_s", 0.0))
    return out


def fit(groups: list[Rows], start: Mapping[str, tuple[float, float]], fixed: Mapping[str, float]) -> dict[str, float]:
    """Constants that make the logarithm of the time right, with a weak prior; robust against noisy rows."""
    names = list(start)
    centre = np.log([start[n][0] for n in names])
    width = np.array([start[n][1] for n in names])
    ceiling = np.array([np.log(HIGHEST_RATE_FRAC) if n.endswith("_rate_frac") else np.inf for n in names])

    def constants(x: Floats) -> dict[str, float]:
        return {**fixed, **{n: float(np.exp(v)) for n, v in zip(names, x, strict=True)}}

    def residual(x: Floats) -> Floats:
        c = constants(x)
        data = [np.log(predict_s(g, c) / g.time_s) / 0.05 for g in groups]
        prior = (x - centre) / width
        return np.concatenate([*[np.sign(d) * np.sqrt(2 * (np.sqrt(1 + d * d) - 1)) for d in data], prior])

    rng = np.random.default_rng(7)
    best: Any = None
    for trial in range(4):
        x0 = np.minimum(centre + (rng.normal(size=len(names)) * width * 0.5 if trial else 0.0), ceiling - 1e-3)
        found = least_squares(residual, x0, diff_step=1e-3, max_nfev=60, bounds=(-np.inf, ceiling))
        if best is None or found.cost < best.cost:
            best = found
    return constants(best.x)


def vendor_start(kind: str, devices: list[Device], centre: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Where to start for the vendor's library: the table above, or (tighter) constants pooled over more devices."""
    start: dict[str, tuple[float, float]] = {}
    for name, (value, width) in VENDOR_START.items():
        if name.startswith("in_switch") and not (
            kind == "all_reduce" and any(d.scaleup.has_reduction for d in devices)
        ):
            continue
        if name == "contention_ratio" and not any(d.scaleup.topology == "bus" for d in devices):
            continue
        if centre:
            value, width = centre.get(name, value), width if name == "launch_s" else min(width, 0.4)
        start[name] = (value, width)
    return start


def engine_start(library: str, base: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """An engine's own kernels, with the vendor's library (but for its small messages) behind them."""
    widths = {
        "bulk_launch_s": 0.5, "bulk_rate_frac": 0.1, "in_switch_launch_s": 0.5, "in_switch_rate_frac": 0.1,
    }  # fmt: skip
    start = {n: (base[n], w) for n, w in widths.items() if n in base}
    if library == "nccl-eager":
        return start | {"launch_s": (base["launch_s"], 1.0), "host_s": FUSED_START["host_s"]}
    return start | {n: v for n, v in FUSED_START.items() if n != "host_s" or library.endswith("eager")}


def read_rows(folder: Path) -> list[Rows]:
    """Every measured group of the collective tables whose device is in the catalogue, inside one node."""
    table = read_table(folder / "kernels/collectives.csv.gz")
    keys = sorted(set(zip(table.columns["device"], table.columns["collective"], table.columns["library"], strict=True)))
    device, kind, library = table.words("device"), table.words("collective"), table.words("library")
    n, per_node = table.numbers("num_devices").astype(np.int64), table.numbers("devices_per_node").astype(np.int64)
    side, found = sides(table, "collective"), []
    for d, k, lib in keys:
        here = (device == d) & (kind == k) & (library == lib)
        if d and get_device(d).name == d:  # a family name stands for boxes of several kinds
            found.append(
                Rows(
                    get_device(d), k, library_key(lib), n[here], per_node[here], table.numbers("message_bytes")[here],
                    table.numbers("time_s")[here], side[here],
                )
            )  # fmt: skip
    return found


def errors(rows: Rows, constants: Mapping[str, float]) -> Floats:
    """measured / predicted of every row."""
    return rows.time_s / predict_s(rows, constants)


def quantiles(ratio: Floats) -> dict[str, float]:
    """The four quantiles of a spread, never narrower than 3 % (timer noise)."""
    low_80, high_80, low_95, high_95 = np.quantile(ratio, [0.1, 0.9, 0.025, 0.975])
    return {
        "low_80": round(min(low_80, 0.97), 4), "high_80": round(max(high_80, 1.03), 4),
        "low_95": round(min(low_95, 0.95), 4), "high_95": round(max(high_95, 1.05), 4),
    }  # fmt: skip


def summary(ratio: Floats) -> str:
    """Median, mean and 90th percentile of the error, and the bias (median of predicted / measured)."""
    error = np.abs(1.0 / ratio - 1.0) * 100
    return (
        f"{np.median(error):6.1f} {error.mean():6.1f} {np.quantile(error, 0.9):6.1f} {np.median(1 / ratio):6.2f}"
        f" {len(ratio):5d}"
    )


@dataclass
class Book:
    """The calibration entries and the table of errors, as they grow."""

    entries: list[dict[str, Any]]
    lines: list[str]

    def add(self, owner: Mapping[str, str], kind: str, library: str, c: Mapping[str, float], cal: Floats, at: str,
            rows: list[Rows]) -> None:  # fmt: skip
        """One calibration entry."""
        sizes = np.concatenate([r.size_bytes for r in rows])
        counts = np.concatenate([r.num_devices for r in rows])
        self.entries.append({
            **owner, "op": kind, "format": "any", "engine": library,
            "from": "vidur" if library == "nccl-eager" or kind == "send_recv" else "aiconfigurator",
            "at": at, "constants": {k: float(f"{v:.5g}") for k, v in sorted({**SCALEOUT, **c}.items())},
            "spread": quantiles(cal),
            "range": {"message_bytes": [float(sizes.min()), float(sizes.max())],
                      "num_devices": [float(counts.min()), float(counts.max())]},
        })  # fmt: skip

    def report(self, rows: Rows, c: Mapping[str, float], left_out: Mapping[str, float] | None) -> None:
        """One line of the error table."""
        test = rows.on(TEST)
        words = f"{rows.device.name:15s} {rows.kind:15s} {rows.library:13s}"
        self.lines.append(
            f"{words} {summary(errors(test, c))}   "
            f"{summary(errors(test, left_out))[:29] if left_out else '':29s}   {summary(baseline(rows)[1])[:6]}   "
            f"{summary(baseline(rows)[0])[:6]}"
        )


def baseline(rows: Rows) -> tuple[Floats, Floats]:
    """measured / predicted on TEST rows of the datasheet bandwidth alone, and of a latency and a rate fitted to it."""
    passes = {"all_reduce": 2.0, "send_recv": 2.0}.get(rows.kind, 1.0)
    bus = passes * (rows.num_devices - 1) / rows.num_devices * rows.size_bytes
    roof = bus / rows.device.scaleup.each_way_bytes_per_s
    at_fit, at_test = rows.side == FIT, rows.side == TEST

    def residual(x: Floats) -> Floats:
        t = np.exp(x[0]) + np.exp(x[1]) * roof[at_fit]
        return np.log(t / rows.time_s[at_fit])

    found = least_squares(residual, [np.log(1e-5), 0.3], loss="soft_l1", f_scale=0.1)
    two = np.exp(found.x[0]) + np.exp(found.x[1]) * roof[at_test]
    return rows.time_s[at_test] / roof[at_test], rows.time_s[at_test] / two


SCALEOUT: dict[str, float] = {}


def everybody(groups: list[Rows], start: Mapping[str, Any], fixed: Mapping[str, float]) -> dict[str, float]:
    """Constants pooled over devices."""
    return fit([g.on(FIT) for g in groups], start, fixed)


def vendor(groups: list[Rows], kind: str, book: Book) -> dict[str, dict[str, float]]:
    """The vendor's library: pooled over all, then each device near the pool. Returns constants by device; "" = all."""
    devices = [g.device for g in groups]
    pool = everybody(groups, vendor_start(kind, devices), {})
    known = {"": pool}
    for g in groups:
        known[g.device.name] = everybody([g], vendor_start(kind, [g.device], pool), {})
    write_family(
        groups,
        kind,
        "nccl",
        known,
        lambda some: everybody(
            some, vendor_start(kind, [g.device for g in some], pool if len(some) == 1 else None), {}
        ),
        book,
    )
    return known


def write_family(groups: list[Rows], kind: str, library: str, known: Mapping[str, dict[str, float]],
                 refit: Callable[[list[Rows]], dict[str, float]], book: Book) -> None:  # fmt: skip
    """Entries for each device, each generation and everybody, with errors of what was left out as their spread."""
    generations = sorted({g.device.generation for g in groups})
    away: dict[str, Floats] = {}
    for name in generations:
        others = [g for g in groups if g.device.generation != name]
        for g in (g for g in groups if g.device.generation == name):
            away[g.device.name] = (
                errors(g.on(CALIBRATE), refit(others)) if others else errors(g.on(CALIBRATE), known[""])
            )
    for g in groups:
        c, n = known[g.device.name], [len(g.on(s).time_s) for s in (FIT, CALIBRATE, TEST)]
        at = f"{g.kind} by {library} on {g.device.name}: {n[0]} rows fitted, {n[1]} for the interval, {n[2]} tested"
        book.add({"device": g.device.name}, kind, library, c, errors(g.on(CALIBRATE), c), at, [g])
        others = [o for o in groups if o is not g and o.device.generation == g.device.generation]
        book.report(g, c, refit(others or [o for o in groups if o is not g]) if len(groups) > 1 else None)
    for name in generations:
        mine = [g for g in groups if g.device.generation == name]
        c = refit(mine)
        names = ", ".join(g.device.name for g in mine)
        if len(mine) > 1:
            left = [errors(g.on(CALIBRATE), refit([o for o in mine if o is not g])) for g in mine]
            how = "interval of each left out"
        else:
            left, how = [away[g.device.name] for g in mine], "interval of its generation left out"
        book.add({"generation": name}, kind, library, c, np.concatenate(left), f"pooled over {names}; {how}", mine)
    at = f"pooled over {', '.join(g.device.name for g in groups)}; interval of each generation left out"
    switched = [away[g.device.name] for g in groups if g.device.scaleup.topology != "bus"]
    book.add({"generation": ""}, kind, library, known[""], np.concatenate(switched or list(away.values())), at, groups)


def main() -> None:
    """Fit, report, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HOME.parent / "shared/data")
    parser.add_argument("--dry-run", action="store_true", help="print the errors, write nothing")
    options = parser.parse_args()
    rows = read_rows(options.data)
    inside = {(r.device.name, r.kind, r.library): r.take(r.num_devices <= r.per_node) for r in rows}
    book = Book([], [])
    SCALEOUT.update(scaleout(rows))
    bases: dict[str, dict[str, float]] = {}
    for kind in VENDOR:
        known = vendor([r for (d, k, lib), r in inside.items() if k == kind and lib == "nccl"], kind, book)
        bases = known if kind == "all_reduce" else bases
    for library in ENGINES:
        engine([r for (d, k, lib), r in inside.items() if lib == library and k == "all_reduce" and d in bases],
               library, bases, book)  # fmt: skip
    one_to_one([r for (d, k, lib), r in inside.items() if k == "send_recv" and d in bases], book)
    head = f"{'device':15s} {'collective':15s} {'library':13s} median   mean    p90   bias  rows   "
    head += "left out: median mean p90 bias   2-const   roofline"
    print("\n".join([head, *book.lines]))
    if not options.dry_run:
        text = "# made by: python tools/fit/collectives.py\n" + tomli_w.dumps(
            {"sources": SOURCES, "calibration": book.entries}
        )
        write_atomically(FOLDER / "collectives.toml", text)


def engine(groups: list[Rows], library: str, bases: Mapping[str, dict[str, float]], book: Book) -> None:
    """An engine's own all-reduce, on top of the vendor's library for large messages."""
    small = ("low_latency_step_s", "low_latency_rate_frac") if library != "nccl-eager" else ()

    def refit(some: list[Rows]) -> dict[str, float]:
        base = bases[some[0].device.name] if len(some) == 1 else bases[""]
        fixed = {k: v for k, v in base.items() if k not in small}
        return everybody(some, engine_start(library, fixed), fixed)

    known = {g.device.name: refit([g]) for g in groups} | {"": refit(groups)}
    write_family(groups, "all_reduce", library, known, refit, book)


def one_to_one(groups: list[Rows], book: Book) -> None:
    """Send and receive between two devices of a node."""
    start = {k: v for k, v in VENDOR_START.items() if not k.startswith(("in_switch", "contention"))}

    def refit(some: list[Rows]) -> dict[str, float]:
        return everybody(some, start, {})

    known = {g.device.name: refit([g]) for g in groups} | {"": refit(groups)}
    write_family(groups, "send_recv", "nccl", known, refit, book)


def scaleout(rows: list[Rows]) -> dict[str, float]:
    """Between nodes: the share of a network card's rate and the latency of a message, from H100 send and receive.

    The A100 machine of the same study has another network than its cards would allow, and is not used.
    """
    far = next(r for r in rows if r.kind == "send_recv" and r.device.name == "h100-sxm")
    far = far.take(far.per_node < far.num_devices).on(FIT)
    fixed = {"launch_s": 4e-6, "bulk_rate_frac": 0.9, "bulk_step_s": 1e-6}
    start = {"scaleout_step_s": (1e-5, 1.0), "scaleout_rate_frac": (0.8, 0.3)}
    found = fit([far], start, fixed)
    return {k: found[k] for k in start}


SOURCES = {
    "aiconfigurator": {
        "title": "AIConfigurator performance database, commit 095f58a51c4c",
        "url": "https://github.com/ai-dynamo/aiconfigurator",
        "retrieved": "2026-11",
    },
    "vidur": {
        "title": "Vidur, profiles of network operations",
        "url": "https://github.com/microsoft/vidur",
        "retrieved": "2026-11",
    },
}

if __name__ == "__main__":
    main()

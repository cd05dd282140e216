"""Fit the constants of expert dispatch and combine to measured tables, report the errors, write the calibrations.

    python tools/fit/exchanges.py --data ../shared/data [--dry-run]

Only rows on the FIT side enter a constant. Kernels between nodes, and TensorRT-LLM's, were measured with one shape
only, which is a TEST shape: they are predicted from DeepEP's constants inside a node and the network's, and scored.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import tomli_w
from collective_rows import Floats, quantiles, summary
from collective_rows import read_rows as read_collectives
from collectives import ALL_CARDS_FRAC, BETWEEN_NODES, FOLDER, HOME, scaleout
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.base.files import write_atomically
from orrery.catalog.devices import get_device
from orrery.evidence.split import CALIBRATE, FIT, TEST, sides
from orrery.evidence.tables import Table, read_table
from orrery.hardware.device import Device
from orrery.network.exchange import exchange_plan, time_of, token_bytes
from orrery.network.group import group_of
from orrery.network.resolve import library_key
from orrery.network.routing import Routing

START: dict[str, tuple[float, float]] = {
    "launch_s": (1.5e-5, 1.0),
    "expert_s": (2e-8, 1.0),
    "token_s": (1e-6, 1.0),
    "wire_rate_frac": (0.7, 0.3),
    "staging_ratio": (0.1, 1.0),
    "overlap_power": (1.3, 0.3),
    "sm_rate_frac": (3.0, 1.0),
}
HIGHEST = {"wire_rate_frac": 0.98, "overlap_power": 4.0}
LOWEST = {"overlap_power": 1.0}


@dataclass(frozen=True)
class Rows:
    """Rows of one device, kind and library."""

    device: Device
    kind: str
    library: str
    table: Table
    side: NDArray[np.str_]

    def on(self, side: str) -> "Rows":
        """Only the rows of one side."""
        here = self.side == side
        return Rows(self.device, self.kind, self.library, self.table.take(here), self.side[here])

    def inside(self) -> "Rows":
        """Only the rows of one fast domain."""
        n, per_node = self.table.numbers("num_devices"), self.table.numbers("devices_per_node")
        here = n <= per_node
        return Rows(self.device, self.kind, self.library, self.table.take(here), self.side[here])

    @property
    def time_s(self) -> Floats:
        """Measured times."""
        return self.table.numbers("time_s")


COLUMNS = ("num_devices", "devices_per_node", "hidden_size", "num_experts", "experts_per_token", "num_sms")


class Predictor:
    """The model's times for some rows, with the work that does not depend on constants done once."""

    def __init__(self, rows: Rows) -> None:
        columns = np.nan_to_num(np.array([rows.table.numbers(c) for c in COLUMNS])).astype(np.int64)
        formats = rows.table.words("format")
        keys = [(*map(int, column), str(f)) for column, f in zip(columns.T, formats, strict=True)]
        self.rows, self.tokens, self.settings = rows, rows.table.numbers("tokens"), []
        for key in sorted(set(keys)):
            n, per_node, hidden, experts, k, sms, format = key
            here = np.array([other == key for other in keys])
            group = group_of("all_to_all", n, per_node, rows.device)
            routing = Routing(group=group, num_experts=experts, experts_per_token=k)
            self.settings.append((here, routing, token_bytes(rows.kind, rows.library, hidden, format), sms))

    def time_s(self, constants: Mapping[str, float]) -> Floats:
        """Predicted times."""
        out = np.empty(len(self.tokens))
        for here, routing, size, sms in self.settings:
            plan = exchange_plan(routing, self.rows.kind, size, self.rows.device, constants, sms)
            out[here] = time_of(plan, self.tokens[here])
        return out


def fit(groups: list[Rows], library: str, centre: Mapping[str, float] | None = None) -> dict[str, float]:
    """Constants for the logarithm of the time, with a weak prior, robust against noisy rows."""
    route = "per_expert" if library == "deepep-low-latency" else "per_device"
    names = [n for n in START if n != ("sm_rate_frac" if route == "per_expert" else "expert_s")]
    middle = np.log([(centre or {}).get(n, START[n][0]) for n in names])
    width = np.array([START[n][1] * (0.5 if centre else 1.0) for n in names])
    low = np.log([LOWEST.get(n, 1e-12) for n in names]) - 1e-9
    high = np.log([HIGHEST.get(n, 1e6) for n in names])
    predictors = [Predictor(g.on(FIT)) for g in groups]

    def constants(x: Floats) -> dict[str, float]:
        return {route: 1.0, **{n: float(np.exp(v)) for n, v in zip(names, x, strict=True)}}

    def residual(x: Floats) -> Floats:
        c = constants(x)
        data = [np.log(p.time_s(c) / p.rows.time_s) / 0.05 for p in predictors]
        return np.concatenate(
            [*[np.sign(d) * np.sqrt(2 * (np.sqrt(1 + d * d) - 1)) for d in data], (x - middle) / width]
        )

    start = np.clip(middle, low + 1e-3, high - 1e-3)
    return constants(least_squares(residual, start, diff_step=1e-3, max_nfev=100, bounds=(low, high)).x)


def read_rows(folder: Path) -> dict[tuple[str, str, str], Rows]:
    """The rows of each device, kind and library."""
    return _split(read_table(folder / "kernels/moe_dispatch_combine.csv.gz")) | _split(newer(folder))


def newer(folder: Path) -> Table:
    """DeepEP on GB300, four devices of a tray: rows of the low-latency kernels, and a sample of the others, which the
    table times with 4 to 24 multiprocessors."""
    path = folder / "kernels_aiconfigurator"
    shape = "hidden_size, num_token as tokens, num_topk as experts_per_token, num_experts, system as device"
    queries = [
        f"""select {shape}, 'moe_{kind}' as collective, 'deepep low-latency' as library, '' as num_sms,
            {kind}_avg_t_us * 1e-6 as time_s from '{path}/wideep_deepep_ll_perf__new_devices.parquet'"""
        for kind in ("dispatch", "combine")
    ] + [
        f"""select {shape}, 'moe_{kind}' as collective, 'deepep normal' as library, {kind}_sms::varchar as num_sms,
            {kind}_transmit_us * 1e-6 as time_s from '{path}/wideep_deepep_normal_perf__new_devices.parquet'
            where hash(hidden_size, num_token, num_topk, num_experts, {kind}_sms) % 1000 < {SAMPLED}"""
        for kind in ("dispatch", "combine")
    ]
    found = duckdb.execute(" union all ".join(queries)).fetchnumpy()
    count = len(found["time_s"])
    columns = {name: [str(v) for v in values.tolist()] for name, values in found.items()}
    fixed = {"num_devices": TRAY_DEVICES, "devices_per_node": TRAY_DEVICES, "format": ""}
    return Table("DeepEP of new devices", columns | {name: [word] * count for name, word in fixed.items()})


SAMPLED, TRAY_DEVICES = 140, "4"
"""Of a thousand rows of the kernels for throughput, as many as other devices have; devices of a GB300 tray."""


def _split(table: Table) -> dict[tuple[str, str, str], Rows]:
    side, device, kind = sides(table, "moe_dispatch"), table.words("device"), table.words("collective")
    library = np.array([library_key(w) for w in table.words("library")])
    found: dict[tuple[str, str, str], Rows] = {}
    for d, k, lib in sorted(set(zip(device.tolist(), kind.tolist(), library.tolist(), strict=True))):
        here = (device == d) & (kind == k) & (library == lib)
        found[d, k, lib] = Rows(get_device(d), k, lib, table.take(here), side[here])
    return found


def errors(rows: Rows, constants: Mapping[str, float]) -> Floats:
    """measured / predicted of every row."""
    return rows.time_s / Predictor(rows).time_s(constants)


LIBRARIES = ("deepep-low-latency", "deepep-normal")
TENSORRT = ("tensorrt-llm-one-sided", "tensorrt-llm-two-sided")
KINDS = ("moe_dispatch", "moe_combine")
SOURCES = {
    "aiconfigurator": {
        "title": "AIConfigurator performance database, commit 095f58a51c4c",
        "url": "https://github.com/ai-dynamo/aiconfigurator",
        "retrieved": "2026-11",
    },
}


def entry(
    owner: Mapping[str, str],
    kind: str,
    library: str,
    c: Mapping[str, float],
    ratios: list[Floats],
    at: str,
    groups: list[Rows],
) -> dict[str, Any]:
    """One calibration."""
    span = {n: np.concatenate([g.table.numbers(n) for g in groups]) for n in ("tokens", "hidden_size", "num_experts")}
    return {
        **owner,
        "op": kind,
        "format": "any",
        "engine": library,
        "from": "aiconfigurator",
        "at": f"{at}; {BETWEEN_NODES}",
        "constants": {k: float(f"{v:.5g}") for k, v in sorted(c.items())},
        "spread": quantiles(*ratios),
        "range": {k: [float(v.min()), float(v.max())] for k, v in span.items()},
    }


def family(
    groups: list[Rows], kind: str, library: str, far: Mapping[str, float]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Entries for each device, each generation and everybody; and the lines of the error table."""
    pool = fit(groups, library)
    own = {g.device.name: fit([g], library, pool) for g in groups}
    pooled = np.concatenate([errors(g.on(CALIBRATE), own[g.device.name]) for g in groups])
    entries: list[dict[str, Any]] = []
    lines: list[str] = []
    away: list[Floats] = []
    for name in sorted({g.device.generation for g in groups}):
        mine = [g for g in groups if g.device.generation == name]
        others = fit([g for g in groups if g.device.generation != name], library)
        away += [errors(g.on(CALIBRATE), others) for g in mine]
        left: list[Floats] = []
        for g in mine:
            c = own[g.device.name]
            kin = fit([o for o in mine if o is not g], library, pool)
            left.append(errors(g.on(CALIBRATE), kin))
            n = [len(g.on(s).time_s) for s in (FIT, CALIBRATE, TEST)]
            at = f"{kind} by {library} on {g.device.name}, inside a node: {n[0]} rows fitted, "
            at += f"{n[1]} for the interval, {n[2]} tested"
            ratios = [errors(g.on(CALIBRATE), c), pooled]
            entries.append(entry({"device": g.device.name}, kind, library, far | c, ratios, at, [g]))
            lines.append(
                f"{g.device.name:10s} {kind:13s} {library:24s} {summary(errors(g.on(TEST), c))}   "
                f"{summary(errors(g.on(TEST), kin))}"
            )
        at = f"pooled over {', '.join(g.device.name for g in mine)}; interval of each left out"
        constants = far | fit(mine, library, pool)
        entries.append(entry({"generation": name}, kind, library, constants, [np.concatenate(left), pooled], at, mine))
    at = f"pooled over {', '.join(g.device.name for g in groups)}; interval of each generation left out"
    entries.append(entry({"generation": ""}, kind, library, far | pool, [np.concatenate(away), pooled], at, groups))
    return entries, lines


def one_copy_a_device(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """TensorRT-LLM's kernels, of which no FIT row exists: DeepEP's low-latency constants, one copy for each device.

    DeepEP's dispatch also turns tokens into fp8; TensorRT-LLM's does not, so the work for each token is that of a
    combine. The preparation of its two-sided kernels moves no tokens, only counts.
    """
    work = {
        tuple(sorted(owner(e).items())): e["constants"]["token_s"]
        for e in entries
        if e["op"] == "moe_combine" and e["engine"] == "deepep-low-latency"
    }
    made: list[dict[str, Any]] = []
    for old in entries:
        if old["engine"] != "deepep-low-latency":
            continue
        c = {k: v for k, v in old["constants"].items() if k != "per_expert"} | {"per_device": 1.0}
        c["token_s"] = work[tuple(sorted(owner(old).items()))]
        at = f"derived: {old['op']} of DeepEP's low-latency kernels with one copy for each device; {old['at']}"
        kinds = [old["op"], *(["moe_prepare"] if old["op"] == "moe_dispatch" else [])]
        anybody = {"op": old["op"], "engine": old["engine"], "generation": ""}
        wide = next(e for e in entries if anybody.items() <= e.items())
        made += [
            old | {"spread": wide["spread"], "engine": lib, "op": kind, "constants": c, "at": at}
            for lib in TENSORRT
            for kind in kinds
        ]
    return made


def owner(entry: Mapping[str, Any]) -> dict[str, str]:
    """Whose constants an entry holds."""
    return {k: entry[k] for k in ("device", "generation") if k in entry}


def constants_of(entries: list[dict[str, Any]], rows: Rows) -> dict[str, float]:
    """The constants that serve some rows: of the device, else of its generation."""
    mine = [e for e in entries if e["op"] == rows.kind and e["engine"] == rows.library]
    device = [e for e in mine if e.get("device") == rows.device.name]
    return (device or [e for e in mine if e.get("generation") == rows.device.generation])[0]["constants"]


def main() -> None:
    """Fit, report, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HOME.parent / "shared/data")
    parser.add_argument("--dry-run", action="store_true", help="print the errors, write nothing")
    options = parser.parse_args()
    rows = read_rows(options.data)
    far = scaleout(read_collectives(options.data)) | {"scaleout_rate_frac": ALL_CARDS_FRAC}
    entries: list[dict[str, Any]] = []
    print(f"{'device':10s} {'collective':13s} {'library':24s} median   mean    p90   bias  rows    sibling only: same")
    for library in LIBRARIES:
        for kind in KINDS:
            groups = [r.inside() for (_, k, lib), r in rows.items() if k == kind and lib == library]
            more, lines = family(groups, kind, library, far)
            entries += more
            print("\n".join(lines))
    entries += one_copy_a_device(entries)
    print("never fitted (no FIT row):")
    for r in rows.values():
        outside = r.table.numbers("num_devices") > r.table.numbers("devices_per_node")
        for n in np.unique(r.table.numbers("num_devices")):
            here = (r.table.numbers("num_devices") == n) & (outside | (r.library in TENSORRT)) & (r.side == TEST)
            if here.any():
                some = Rows(r.device, r.kind, r.library, r.table.take(here), r.side[here])
                words = summary(errors(some, constants_of(entries, r)))
                print(f"{r.device.name:10s} {r.kind:13s} {r.library:24s} {words}   {n:.0f} devices")
    if not options.dry_run:
        text = "# made by: python tools/fit/exchanges.py\n" + tomli_w.dumps(
            {"sources": SOURCES, "calibration": entries}
        )
        write_atomically(FOLDER / "moe_dispatch.toml", text)


if __name__ == "__main__":
    main()

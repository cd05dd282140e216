"""Fit what an engine's host costs, from measured serving runs, and how wide the intervals of its answers are.

    python tools/fit/engines.py --data ../shared/data

Constants are seconds a step, a sequence, a layer and a request, and how much longer kernels take whose own engine or
device nobody measured. They are pooled along a tree: any engine, this engine, its era (the [[version]] tables of its
fact file; ``unknown`` for runs that do not say), the generation of devices (``engine_tree``). Rows of the fit and
calibrate sides (by a hash of model and device count) have a part in them, the test side none. Then every campaign is
predicted without its rows; those errors give the widths of intervals (``engine_widths``) and the scores by campaign
of the scorecard. Rows that beat the datasheet's bound are left out by that bound, rows of ``tools/excluded.toml``
for the reason given there.
"""

import argparse
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from accuracy_tables import write_tables
from campaign_scores import BY_CAMPAIGN, scores
from engine_fit import ROUNDS, fit, fit_unit
from engine_rows import Measured, kind_of, read_rows, remember_steps, remember_surfaces
from engine_scores import MOST, PredictedValue, describe, thin
from engine_tree import (
    CONSTANTS,
    HIGH,
    LOW,
    MARGIN,
    ROOT,
    START,
    UNIT,
    Tree,
    constants_of,
    has_ratio,
    logs_at,
    path_of,
    row_path,
    tree_from,
    units_of,
)
from engine_widths import FACTORS, Widths, calibrated, errors_of, shared_fracs

from orrery.base.files import write_atomically
from orrery.catalog.engines import FITTED, POOLED, host_of
from orrery.evidence.accuracy import read_tables
from orrery.evidence.split import TEST

USED = {"static": 16, "offline": 10, "open": 12, "closed": 12}
POOLS_USED = 6
"""Rows of one campaign that enter a fit, taken evenly; fewer where runs of several pools take long to simulate."""

SOURCES = {"runs": {"title": "Published serving runs, tables of docs/scorecard.md", "retrieved": "2026-11"}}


def main() -> None:
    """Fit, leave campaigns out, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=FITTED)
    parser.add_argument("--only", default=None, help="fit on this engine's runs alone; keep the others' constants")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="the most rounds")
    parser.add_argument("--again", action="store_true", help="go on from the constants that are there")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    arguments = parser.parse_args()
    started = time.perf_counter()
    remember_steps()
    remember_surfaces()
    everything = read_rows(arguments.data)
    rows = [r for r in everything if arguments.only in (None, host_of(r.deployment.engine.name))]
    usable = [r for r in rows if not r.excluded and r.side != TEST]
    used = thin(usable, USED, POOLS_USED)
    print(f"{len(used)} rows of {len({r.campaign for r in used})} campaigns", flush=True)
    known, sizes = tree_from(_entries(arguments.out)), Counter(r.campaign for r in usable)
    if arguments.only is None:
        tree, slopes = fit(used, sizes, known if arguments.again else units_of(known), arguments.rounds)
    else:
        tree, slopes = fit_unit(used, sizes, arguments.only, arguments.rounds)
    print(f"fitted after {time.perf_counter() - started:.0f} s", flush=True)
    found = describe(thin(rows, MOST), used, slopes, tree, known)
    print(f"campaigns left out after {time.perf_counter() - started:.0f} s", flush=True)
    errors = {factor: errors_of(found, factor) for factor in FACTORS}
    told = {factor: those for factor, those in errors.items() if np.unique(those.campaign).size > 1}
    by_factor = {factor: calibrated(those) for factor, those in told.items()}  # one campaign says nothing of others
    for factor, those in by_factor.items():
        print(f"{factor}: levels stretched by " + ", ".join(f"{v:.2f} ({k} %)" for k, v in those.stretch.items()))
    print("shared: {:.2f} of one model's squared error, {:.2f} of all of a campaign".format(*shared_fracs(found)))
    made = entries(used, tree, by_factor, found)
    if arguments.only is not None:
        made = beside(_entries(arguments.out), made, arguments.only)
    table = scores(found) if arguments.only is None else {}
    _print(table)
    if not arguments.dry:
        content = tomli_w.dumps({"sources": SOURCES, "engine": made})
        write_atomically(arguments.out, f"# made by: python tools/fit/engines.py\n{content}")
        if arguments.only is None:
            write_tables(read_tables() | {BY_CAMPAIGN: table})
    print(f"done after {time.perf_counter() - started:.0f} s", flush=True)


def _entries(path: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["engine"]
    return entries


def beside(known: list[dict[str, Any]], made: list[dict[str, Any]], engine: str) -> list[dict[str, Any]]:
    """The entries of other engines as an earlier fit found them, and those of ``engine``: what no run of its own shows
    of its errors is that of the engine's earlier entry, or of any engine."""
    earlier = {(e["version"], e["generation"]): e for e in known if e["name"] == engine}
    anything = earlier.get((POOLED, ""), known[0])
    mine = [
        e | {"spread": earlier.get((e["version"], e["generation"]), anything)["spread"] | e["spread"]}
        for e in made
        if e["name"] == engine
    ]
    return sorted((*(e for e in known if e["name"] != engine), *mine), key=lambda e: e["name"])


def entries(
    used: Sequence[Measured], tree: Tree, by_factor: Mapping[str, Widths], found: Sequence[PredictedValue]
) -> list[dict[str, Any]]:
    """One entry for each node of the tree."""
    count = Counter(key for row in used for key in row_path(row))
    campaigns = {key: {r.campaign for r in used if key in row_path(r)} for key in tree}
    scaled = {key for row in used if has_ratio(row) for key in row_path(row)}
    own = {key for row in used if not has_ratio(row) for key in row_path(row)}
    handed = {key for row in used if len(row.service.pools) > 1 for key in row_path(row) if key[1]}
    modes = sorted({kind_of(t.row) for t in found})
    out: list[dict[str, Any]] = []
    for key in sorted(tree, key=lambda k: (k != ROOT, k)):
        path = path_of(key)
        logs = logs_at(tree, path, is_scaled=key in scaled and key not in own)
        name, era, generation = key
        is_said = {
            UNIT: logs[CONSTANTS.index(UNIT)] < START[CONSTANTS.index(UNIT)] - MARGIN,
            "handover_s": key in handed,
        }
        out.append(
            {
                "name": name,
                "version": era or POOLED,
                "generation": generation,
                "source": "runs",
                "rows": count[key],
                "campaigns": len(campaigns[key]),
                "at_bound": at_bound(logs),
                "at": f"{count[key]} rows of {len(campaigns[key])} campaigns to fit; intervals from campaigns left out",
                "constants": {n: v for n, v in constants_of(logs).items() if is_said.get(n, True)},
                "spread": {f"{m}.{f}": widths.spread(m, path) for m in modes for f, widths in by_factor.items()},
            }
        )
    return out


def at_bound(logs: np.ndarray) -> list[str]:
    """Constants that ended where their fit was not let further; those that are not fitted stand at their start."""
    beyond = (logs <= LOW + MARGIN) | (logs >= HIGH - MARGIN)
    return [
        name for name, is_out, start, x in zip(CONSTANTS, beyond, START, logs, strict=True) if is_out and x != start
    ]


def _print(table: Mapping[str, Any]) -> None:
    for metric, campaigns in table.items():
        print(f"\n{metric}")
        for name, e in campaigns.items():
            covered = (
                f"{100 * e['covered_80']:4.0f} % in, half {100 * e['half_width']:5.1f}" if "covered_80" in e else ""
            )
            print(
                f"  {name:80} {e['rows']:4} {e['left_out']:9} {100 * e['median']:6.1f} {100 * e['p90']:7.1f} "
                f"bias {100 * e['bias']:+6.1f}  shipped {100 * e['shipped_median']:6.1f}  {covered}"
            )


if __name__ == "__main__":
    main()

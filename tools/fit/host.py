"""Fit what is believed of a CPU before it is measured: ``python tools/fit/host.py [--measure SECONDS]``.

``--measure`` first times a seeded draw of kernels on this machine and writes them, with the machine's conditions, to
``measured/cpu_kernels.csv``. The fit takes the rows of every machine in that table apart by a hash of their sizes: half
for the constants, half for their interval. A machine's roofs are its fastest product and stream over ``HEADROOM``.
"""

import argparse
import csv
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import tomli_w
from intervals import QUANTILES

from orrery.base.cost import Spread
from orrery.base.posterior import Posterior, settle
from orrery.base.units import percent
from orrery.calibrate.device.draft import anchors, draft
from orrery.calibrate.device.pool import pool_of
from orrery.calibrate.device.rows import COLUMNS, row_of, work_of
from orrery.calibrate.device.unknowns import FitParameters, unknowns_of
from orrery.calibrate.measure.backends.backend import Unsupported
from orrery.calibrate.measure.backends.on_numpy import NumpyBackend
from orrery.calibrate.measure.quiet import QUIET_RATIO, QuietSampler
from orrery.calibrate.measure.state import conditions
from orrery.calibrate.measure.watch import Canary
from orrery.hardware.calibration import Calibration

TABLE = Path(__file__).parent / "measured" / "cpu_kernels.csv"
OUT = Path(__file__).parents[2] / "src/orrery/catalog/facts/calibrations/host.toml"

NEAR_BYTES = 2.0**21
"""A second-level cache; what the times show is gradual, and the ramp of the law spans a factor of four."""

GEMM = {
    "direct_products": 1e6,
    "near_bytes": NEAR_BYTES,
    "call_s": 1e-6,
    "product_frac": 0.9,
    "vector_memory_ratio": 0.8,
    "vector_cache_ratio": 2.0,
    "direct_memory_ratio": 0.5,
    "direct_cache_ratio": 2.0,
    "pack_memory_ratio": 0.3,
    "pack_cache_ratio": 1.0,
}
ATTENTION = {
    "near_bytes": NEAR_BYTES,
    "call_s": 5e-5,
    "group_s": 2e-6,
    "product_frac": 0.5,
    "score_near_ratio": 0.2,
    "score_far_ratio": 0.1,
    "entry_ratio": 0.2,
    "read_memory_ratio": 0.5,
    "read_cache_ratio": 1.0,
}
STREAM = {"near_bytes": NEAR_BYTES, "call_s": 2e-5, "stream_near_ratio": 0.5, "stream_far_ratio": 0.2}
START = {
    "gemm": GEMM,
    "attention_prefill": ATTENTION,
    "attention_decode": ATTENTION,
    "elementwise_norm": STREAM,
    "elementwise_gated_activation": STREAM,
    "elementwise_sample": STREAM,
}
"""Where the search for constants starts, in order of magnitude."""

LOOSE = 1.5
"""One sigma (log) of what is believed before any row is read."""

NOISE = 0.08


def start_calibrations(engine: str = "numpy") -> dict[tuple[str, str, str], Calibration]:
    spread = Spread(low_80_ratio=0.5, high_80_ratio=2.0, low_95_ratio=0.3, high_95_ratio=3.0)
    return {
        (op, _format(op), engine): Calibration(
            op=op,
            format=_format(op),
            engine=engine,
            origin="generation",
            law="host",
            constants=constants,
            spread=spread,
        )
        for op, constants in START.items()
    }


def _format(op: str) -> str:
    return "fp32+fp32" if op.startswith("attention") else "fp32"


def measure(seconds: float) -> None:
    """Time anchors, then kernels of the pool in a drawn order, for about so long."""
    backend, began = NumpyBackend(), time.monotonic()
    quiet = QuietSampler(Canary.of(backend))
    found = anchors(backend, "fp32", quiet, budget_s=0.1)
    device = replace(draft(backend, {"fp32": found}, name="here"), calibrations=start_calibrations())
    pool = list(pool_of(device, "numpy", ("fp32",)))
    now = conditions()
    source = f"{now.cpu}, {now.num_cores} cores, numpy {now.numpy}, {now.blas}, {now.num_blas_threads} BLAS threads"
    rows = [{"kind": "anchor", "op": name, "time_s": value, "source": source} for name, value in found.items()]
    for i in np.random.default_rng(0).permutation(len(pool)):
        if time.monotonic() - began > seconds:
            break
        got = quiet.time(backend, pool[i].op, budget_s=0.05)
        if not isinstance(got, Unsupported):
            timed, slow = got
            measured = {"time_s": f"{timed.time_s:.6g}", "spread_frac": f"{timed.spread_frac:.3f}"}
            rows.append(row_of(pool[i], "", source, **measured, slowness_ratio=f"{slow:.3f}"))
    TABLE.parent.mkdir(exist_ok=True)
    with TABLE.open("w", newline="") as file:
        out = csv.DictWriter(file, COLUMNS)
        out.writeheader()
        out.writerows(rows)
    print(f"{len(rows)} rows in {time.monotonic() - began:.0f} s")


def fit() -> None:
    rows = list(csv.DictReader(TABLE.open()))
    found = {r["op"]: float(r["time_s"]) for r in rows if r["kind"] == "anchor"}
    device = replace(draft(NumpyBackend(), {"fp32": found}, name="here"), calibrations=start_calibrations())
    works = [
        (work_of(r), float(r["time_s"]))
        for r in rows
        if r["kind"] == "kernel" and float(r["slowness_ratio"]) <= QUIET_RATIO
    ]
    entries = []
    for key in device.calibrations:
        mine = [(w, t) for w, t in works if w.key == key]
        half = np.array([zlib.crc32(w.name.encode()) % 2 for w, _ in mine], dtype=bool)
        unknowns = unknowns_of(device, [key])
        wide = Posterior(mean=unknowns.prior.mean, covariance=LOOSE**2 * np.eye(len(unknowns.names)))
        unknowns = replace(unknowns, prior=wide)
        chosen, errors = solve(unknowns, mine, half)
        whole, _ = solve(unknowns, mine, np.ones(len(mine), dtype=bool))
        error = np.exp(errors[~half]) - 1.0
        print(
            f"{key[0]:32s} {len(mine):4d} rows, unseen half: median {percent(np.median(np.abs(error)), 1)} "
            f"mean {percent(np.abs(error).mean(), 1)} p90 {percent(np.quantile(np.abs(error), 0.9), 1)}"
        )
        print("   ", {n: float(f"{v:.3g}") for (_, n), v in zip(whole.names, np.exp(whole.prior.mean), strict=True)})
        entries.append(entry(key, whole, -errors[~half], len(mine), device.calibrations[key].constants))
        del chosen
    sources = {"orrery": {"title": "tools/fit/measured/cpu_kernels.csv: " + rows[0]["source"], "retrieved": "2026-11"}}
    text = "# made by: python tools/fit/host.py\n" + tomli_w.dumps({"sources": sources, "calibration": entries})
    OUT.write_text(text)


def solve(unknowns: FitParameters, mine: list, use: np.ndarray) -> tuple[FitParameters, np.ndarray]:
    """The unknowns settled on the rows of ``use``, and log(predicted / measured) of all rows."""
    works, time_s = [w for w, _ in mine], np.array([t for _, t in mine])
    few = [w for w, u in zip(works, use, strict=True) if u]

    def errors(x):
        predicted, slopes = unknowns.predict(few, x)
        return np.log(predicted / time_s[use]), slopes

    found = settle(errors, unknowns.prior, np.full(len(few), NOISE))
    predicted, _ = unknowns.predict(works, found.mean)
    return replace(unknowns, prior=found), np.log(predicted / time_s)


def entry(key, unknowns: FitParameters, left: np.ndarray, num_rows: int, start) -> dict:
    """One [[calibration]] table: constants, and the interval of measured / predicted on the half not used."""
    constants = {n: float(f"{v:.4g}") for (_, n), v in zip(unknowns.names, np.exp(unknowns.prior.mean), strict=True)}
    fixed = {n: v for n, v in start.items() if n not in constants}
    return {
        "generation": "host",
        "op": key[0],
        "format": key[1],
        "engine": key[2],
        "law": "host",
        "from": "orrery",
        "at": f"{num_rows} rows; interval from the half that was not fitted",
        "constants": {**fixed, **constants},
        "spread": {k: round(float(np.exp(np.quantile(left, q))), 4) for k, q in QUANTILES.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--data", help="not read: the rows are this project's own")
    requested = parser.parse_args()
    if requested.measure:
        measure(requested.measure)
    fit()


if __name__ == "__main__":
    main()

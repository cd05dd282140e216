"""Calibrate this machine by ten measurements, predict real work on it, do it, and write down how close that came.

    python tools/ground_truth.py [--suite long]

writes docs/ground-truth.md, docs/data/ground-truth.csv, and its part of src/orrery/evidence/accuracy.toml. Run it with
one BLAS thread (OPENBLAS_NUM_THREADS=1) on a machine that does nothing else.
"""

import argparse
import csv
import io
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from orrery.base.files import write_atomically
from orrery.calibrate.device.answer import DeviceAnswer
from orrery.calibrate.device.calibrate import calibrate_device
from orrery.calibrate.truth.verify import GROUPS, Verified, verify_device
from orrery.scenario.answer import to_json

ROOT = Path(__file__).resolve().parents[1]
ACCURACY = ROOT / "src" / "orrery" / "evidence" / "accuracy.toml"
PAGE, TABLE = ROOT / "docs" / "ground-truth.md", ROOT / "docs" / "data" / "ground-truth.csv"
KEY = "ground truth"

INTRO = """# Ground truth: real work, predicted and then done

A machine was calibrated by ten measurements (`orrery calibrate device --measurements 10`). Then the work below was
predicted through the same doors that everybody uses, and after that it was done on that machine: products of shapes
that were never measured, prompts and decode steps of small transformers written in NumPy, an all-reduce between two
processes, and a server with continuous batching under a Poisson load at 30, 60 and 85 % of its predicted capacity.
`python tools/ground_truth.py` does it again, on your machine; `orrery calibrate verify` shows it without writing.
"""

GOALS = {
    ("products", "time_s"): 0.10, ("prefill", "ttft_s"): 0.12, ("decode", "tpot_s"): 0.12,
    ("exchange", "time_s"): 0.20, ("server", "ttft_s"): 0.15, ("server", "tpot_s"): 0.15,
}  # fmt: skip
"""Median errors to stay under."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="long")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        box = Path(folder) / "box.toml"
        calibrated = calibrate_device(box, backend="numpy", measurements=10)
        found = verify_device(box, suite=asked.suite, on_progress=_tell)
    write_atomically(TABLE, _table(found))
    write_atomically(PAGE, _page(calibrated, found))
    kept = tomllib.loads(ACCURACY.read_text(encoding="utf-8"))
    head = ACCURACY.read_text(encoding="utf-8").splitlines()[0] + "\n"
    write_atomically(ACCURACY, head + tomli_w.dumps({**kept, KEY: _entries(found)}))
    print(f"wrote {PAGE}, {TABLE} and {ACCURACY}")


def _tell(done: int, total: int) -> None:
    if done % 50 == 0 or done == total:
        print(f"{done} of {total}", flush=True)


def _entries(found: Verified) -> dict[str, dict[str, dict[str, float]]]:
    entries: dict[str, dict[str, dict[str, float]]] = {}
    for (group, metric), s in found.scores().items():
        entries.setdefault(metric, {})[group] = {
            "rows": s.rows, "median": round(s.median_abs_error_frac, 4), "mean": round(s.mean_abs_error_frac, 4),
            "p90": round(s.p90_abs_error_frac, 4), "bias": round(s.bias_frac, 4),
            "covered_80": round(s.covered_80_frac or 0.0, 4),
        }  # fmt: skip
    return entries


def _table(found: Verified) -> str:
    rows: list[dict[str, Any]] = [to_json(row) for row in found.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    return text.getvalue()


def _page(calibrated: DeviceAnswer, found: Verified) -> str:
    now = calibrated.conditions
    machine = f"{now['cpu']}, {now['num_cores']} cores, NumPy {now['numpy']}, {now['blas']}"
    lines = [
        INTRO, "## The machine\n",
        f"{machine}, {now['num_blas_threads']} BLAS thread(s), {now['system']}; measured {now['measured_on']}.",
        *(f"\nWhat disturbed it: {words}" for words in calibrated.notes),
        f"\nWhat the calibration expected of its own predictions of kernels: {calibrated.uncertainty_frac:.0%} "
        "(one sigma).\n",
        "## Errors\n",
        "| work | metric | cases | median | mean | 90 % | bias | in 80 % | goal (median) |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {GROUPS[group][1]} | `{metric}` | {s.rows} | **{s.median_abs_error_frac:.1%}** "
            f"| {s.mean_abs_error_frac:.1%} | {s.p90_abs_error_frac:.1%} | {s.bias_frac:+.1%} "
            f"| {s.covered_80_frac:.0%} | {GOALS[group, metric]:.0%} |"
            for (group, metric), s in found.scores().items()
        ),
        "\nEvery case is in [data/ground-truth.csv](data/ground-truth.csv).\n",
        "## The ten measurements\n", "| measured | foreseen | took | machine |", "|---|---|---|---|",
        *(
            f"| {row.work} | {1e3 * row.foreseen_s:.3g} ms | {1e3 * row.time_s:.3g} ms "
            f"| {row.slowness_ratio:.2f} x quiet |"
            for row in calibrated.rows
        ),
        "\nA server runs for seconds, over quiet and restless moments alike, while a calibration waits for quiet ones:",
        "on a shared machine its times lie above the prediction, and say how busy the neighbours were.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

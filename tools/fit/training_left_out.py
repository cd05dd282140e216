"""How far the training model is on a device that had no part in any fit.

    python tools/fit/training_left_out.py --data ../shared/data

Every constant is fitted again from the fit rows of the other devices; a generation and precision (or a framework on a
generation) that only this device's rows speak of then takes the pooled values. The device's test rows are scored. The
errors are printed, and written to src/orrery/evidence/accuracy.toml, from where the scorecard quotes them.
"""

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tomli_w

from orrery.base.files import write_atomically
from orrery.evidence.score import score_errors
from orrery.evidence.split import TEST
from training import Run, fit, read_runs, theta_of, time_errors

ACCURACY = Path(__file__).resolve().parents[2] / "src" / "orrery" / "evidence" / "accuracy.toml"

LEFT_OUT, STEP = "training, a device left out", "step"
"""Where that file keeps the errors, by device."""

DEVICES: dict[str, tuple[str, ...]] = {
    "h100-sxm": ("h100-sxm",), "a100-sxm-80gb": ("a100-sxm-80gb",), "b200 and gb200": ("b200", "gb200"),
}  # fmt: skip
"""What is left out together, as the page calls it."""


def errors_without(runs: Sequence[Run], devices: Sequence[str]) -> dict[str, float]:
    """The errors on the test rows of some devices, fitted without any of their rows."""
    known = fit([r for r in runs if r.member.job.cluster.device.name not in devices])
    test = [r for r in runs if r.member.job.cluster.device.name in devices and r.side == TEST and r.time_s > 0]
    error = np.exp(-time_errors(test, [theta_of(r, known) for r in test])) - 1.0
    for file in sorted({r.file for r in test}):
        size = np.abs(error[[r.file == file for r in test]])
        print(f"    {file:36} {size.size:4} rows  median {np.median(size):6.3f}  mean {size.mean():6.3f}")
    found = score_errors(error)
    values = {"median": found.median_abs_error_frac, "mean": found.mean_abs_error_frac,
              "p90": found.p90_abs_error_frac, "bias": found.bias_frac}  # fmt: skip
    return {"rows": found.rows} | {k: round(v, 4) for k, v in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    arguments = parser.parse_args()
    runs = read_runs(arguments.data)
    found: dict[str, dict[str, float]] = {}
    for name, devices in DEVICES.items():
        found[name] = errors_without(runs, devices)
        print(name, found[name], flush=True)
    if not arguments.dry:
        text = ACCURACY.read_text(encoding="utf-8")
        head = text.splitlines()[0]
        entries = tomllib.loads(text) | {LEFT_OUT: {STEP: found}}
        write_atomically(ACCURACY, f"{head}\n{tomli_w.dumps(entries)}")


if __name__ == "__main__":
    main()

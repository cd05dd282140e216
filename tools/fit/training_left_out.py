"""How far the training model is on a device that had no part in any fit.

    python tools/fit/training_left_out.py --data ../shared/data

Twice: once every constant is fitted again from the fit rows of the other devices, so that a framework that ran on
this device alone is unknown too; and once only what speaks of its generation is, while the frameworks keep what
the catalogue says of their hosts (this device's fit rows had a part in that). What no other row speaks of takes the
pooled values. The device's test rows are scored. With
``--models`` whole models are left out instead, and all of their rows scored. The errors are printed, and written to
src/orrery/evidence/accuracy.toml, from where the scorecard quotes them.
"""

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from accuracy_tables import write_tables
from training_runs import Run, read_runs, time_errors

from orrery.catalog.frameworks import FITTED
from orrery.evidence.accuracy import read_tables
from orrery.evidence.score import score_errors
from orrery.evidence.split import FIT, TEST
from training import (
    DEVICE,
    HOST_BOUND_FRAC,
    LINKS,
    MIN_FIT,
    Known,
    even,
    fit,
    fitted,
    launch_share,
    theta_of,
)

LEFT_OUT, STEP = "training, a device left out", "step"
"""Where that file keeps the errors, by device."""

DEVICES: dict[str, tuple[str, ...]] = {
    "h100-sxm": ("h100-sxm",),
    "a100-sxm-80gb": ("a100-sxm-80gb",),
    "b200 and gb200": ("b200", "gb200"),
}
"""What is left out together, as the page calls it."""


MODELS: dict[str, tuple[str, ...]] = {
    "grok-1": ("xai-org/grok-1",),
    "qwen3-30b-a3b": ("Qwen/Qwen3-30B-A3B",),
    "gpt-oss-120b": ("openai/gpt-oss-120b",),
    "llama-3.1-405b": ("meta-llama/Llama-3.1-405B",),
    "nemotron-4-15b": ("nvidia/nemotron-4-15b",),
    "llama-3-70b": ("meta-llama/Meta-Llama-3-70B", "meta-llama/Llama-3.1-70B"),
    "llama-3-8b": ("meta-llama/Meta-Llama-3-8B", "meta-llama/Llama-3.1-8B"),
}
"""Models that are left out, whole and cut short, in every table."""


def shipped() -> Known:
    """The constants as they stand in the catalogue."""
    entries = tomllib.loads(FITTED.read_text(encoding="utf-8"))["framework"]
    return {(e["name"], e["generation"], e["precision"]): e.get("constants", {}) for e in entries}


def refitted(others: Sequence[Run], known: Known, generations: set[str]) -> Known:
    """What is known, but what speaks of some generations only from the fit rows of ``others``."""
    rows = even(r for r in others if r.side == FIT and r.time_s > 0)
    out = {key: theta for key, theta in known.items() if key[1] not in generations}
    for key in sorted(known.keys() - out.keys()):
        mine = [r for r in rows if all(k in ("", w) for k, w in zip(key, r.key, strict=True))]
        if not key[0]:
            mine = [r for r in mine if launch_share(r, theta_of(r, out)) < HOST_BOUND_FRAC]
        if len(mine) >= MIN_FIT and (names := [n for n in (*DEVICE, *LINKS, "attention_ratio") if n in known[key]]):
            rest = [theta_of(r, out) for r in mine]
            out[key] = fitted(mine, names, known["", "", ""], rest, time_errors)
    return out


def without(runs: Sequence[Run], known: Known, models: Sequence[str]) -> Known:
    """Every constant that rows of these models had a part in once more, from the rows of the others."""
    mine = [r for r in runs if r.member.job.model.name in models and r.side == FIT]
    spoke = {k for r in mine for k in ((r.key[0], "", ""), (*r.key[:2], ""), ("", *r.key[1:]))}
    others = [r for r in runs if r.member.job.model.name not in models]
    return fit(others, {key: theta for key, theta in known.items() if key not in spoke})


def score(test: Sequence[Run], known: Known) -> dict[str, float]:
    """The errors on some rows, also by table."""
    error = np.exp(-time_errors(test, [theta_of(r, known) for r in test])) - 1.0
    for file in sorted({r.file for r in test}):
        size = np.abs(error[[r.file == file for r in test]])
        print(f"    {file:36} {size.size:4} rows  median {np.median(size):6.3f}  mean {size.mean():6.3f}")
    found = score_errors(error)
    values = {
        "median": found.median_abs_error_frac,
        "mean": found.mean_abs_error_frac,
        "p90": found.p90_abs_error_frac,
        "bias": found.bias_frac,
    }
    return {"rows": found.rows} | {k: round(v, 4) for k, v in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    parser.add_argument("--models", action="store_true", help="leave whole models out, and print their errors")
    arguments = parser.parse_args()
    runs = read_runs(arguments.data)
    if arguments.models:
        known = shipped()
        for name, models in MODELS.items():
            mine = [r for r in runs if r.member.job.model.name in models and r.time_s > 0]
            print(name, score(mine, without(runs, known, models)), flush=True)
        return
    found: dict[str, dict[str, float]] = {}
    for name, devices in DEVICES.items():
        mine = [r for r in runs if r.member.job.cluster.device.name in devices]
        others = [r for r in runs if r.member.job.cluster.device.name not in devices]
        test = [r for r in mine if r.side == TEST and r.time_s > 0]
        for title, known in (
            (f"{name}, frameworks known", refitted(others, shipped(), {r.key[1] for r in mine})),
            (name, fit(others)),
        ):
            found[title] = score(test, known)
            print(title, found[title], flush=True)
    if not arguments.dry:
        write_tables(read_tables() | {LEFT_OUT: {STEP: found}})


if __name__ == "__main__":
    main()

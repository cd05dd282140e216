"""Score the shipped GEMM constants on test rows, beside two baselines, and paste the table into the documentation.

    python tools/fit/gemm_report.py --data ../shared/data

Roofline: datasheet peak and bandwidth, nothing fitted. Three constants: a launch and one fraction of each roof, fitted
to the same rows as ours. The interval column says how often the shipped 80 % interval holds the truth.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from gemm_fit import ERROR_SCALE, Floats
from gemm_learn import corrected, rule_rows
from gemm_rows import FIT, TEST, Key, Rows, read_rows
from scipy.optimize import least_squares

from orrery.base.files import write_atomically
from orrery.base.units import percent
from orrery.catalog.calibrations import calibrations_for
from orrery.hardware.calibration import Calibration
from orrery.kernels.gemm import _kernel as kernel

PAGE = Path(__file__).parents[2] / "docs/models/gemm.md"
BEGIN, END = "<!-- table: tools/fit/gemm_report.py -->", "<!-- end of table -->"
HEADER = """| device | format | engine | rows | roofline | 3 constants | rule alone | with trees | in 80 % |
|---|---|---|---|---|---|---|---|---|"""


def roofs(rows: Rows, found: Calibration) -> tuple[Floats, Floats]:
    """Datasheet compute and memory times."""
    out = rule_rows(rows, found.constants)
    return out[:, kernel.COMPUTE], out[:, kernel.MEMORY]


def three_constants(rows: Rows, found: Calibration) -> Floats:
    """launch + max(compute / a, memory / b) on the test rows, fitted to the fit rows."""
    fit, test = rows.on(FIT), rows.on(TEST)

    def model(x: Floats, part: Rows) -> Floats:
        compute, memory = roofs(part, found)
        launch, a, b = np.exp(x)
        return launch + np.maximum(compute / a, memory / b)

    best = least_squares(
        lambda x: np.log(model(x, fit) / fit.time_s), np.log([5e-6, 0.7, 0.7]), loss="soft_l1", f_scale=ERROR_SCALE
    )
    return model(best.x, test)


def score(rows: Rows, found: Calibration) -> dict[str, Floats]:
    """Absolute relative errors of each model on the test rows, and whether the interval holds."""
    test = rows.on(TEST)
    answers = {
        "roofline": np.maximum(*roofs(test, found)),
        "three": three_constants(rows, found),
        "rule": corrected(test, found.constants, None),
        "trees": corrected(test, found.constants, found.residual),
    }
    errors = {name: np.abs(answer / test.time_s - 1) for name, answer in answers.items()}
    ratio = test.time_s / answers["trees"]
    return errors | {"held": ((ratio >= found.spread.low_80_ratio) & (ratio <= found.spread.high_80_ratio)) * 1.0}


def cell(errors: Floats) -> str:
    """Median / mean / 90th percentile in per cent."""
    return "/".join(f"{100 * v:.1f}" for v in (np.median(errors), errors.mean(), np.quantile(errors, 0.9)))


def line(names: tuple[str, str, str], scores: Mapping[str, Floats]) -> str:
    """One row of the table."""
    models = " | ".join(cell(scores[name]) for name in ("roofline", "three", "rule", "trees"))
    return f"| {' | '.join(names)} | {len(scores['rule'])} | {models} | {percent(scores['held'].mean())} |"


def table(groups: Mapping[Key, Rows]) -> str:
    """All groups, then all rows of the main table together."""
    found = {
        key: score(rows, calibrations_for(key[0], rows.device.generation)["gemm", key[1], key[2]])
        for key, rows in groups.items()
    }
    main = [scores for key, scores in found.items() if not groups[key].is_timed_on_host]
    total = {name: np.concatenate([scores[name] for scores in main]) for name in main[0]}
    lines = [line(key, scores) for key, scores in sorted(found.items())]
    return "\n".join([HEADER, *lines, line(("**all**", "", "not timed on the host"), total)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    groups, _ = read_rows(parser.parse_args().data)
    text = table(groups)
    print(text)
    before, rest = PAGE.read_text().split(BEGIN)
    write_atomically(PAGE, f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()

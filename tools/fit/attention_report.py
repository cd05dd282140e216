"""Print, as Markdown, how well the attention rules repeat the test rows, with two baselines beside them.

    python tools/fit/attention_report.py --data ../shared/data

The roofline is the larger of flops over the datasheet peak and bytes over the datasheet bandwidth; "3 constants" is a
launch and a share of either roof, fitted on the same rows as ours. Errors are median / mean / 90th percentile of
|predicted / measured - 1| in percent; bias is the median of predicted / measured.
"""

import argparse
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from attention import DECODE, PREFILL
from attention_fit import Floats, Group, Rule, read_groups
from kernel_scores import baseline, errors
from latent import ABSORB
from latent import DECODE as LATENT_DECODE
from latent import PREFILL as LATENT_PREFILL

from orrery.catalog.calibrations import FOLDER
from orrery.catalog.residuals import residual_of
from orrery.evidence.split import FIT, TEST
from orrery.kernels.residual import correction

HEAD = "| device | format | engine | rows | roofline | 3 constants | physics | with trees | bias |"
FILES = {op: (op, "kernel_power") for op in ("attention_prefill", "attention_decode")}


def constants_of(rule: Rule) -> Mapping[tuple[str, str, str], Mapping[str, float]]:
    """Fitted constants by device, format and engine."""
    entries = tomllib.loads((FOLDER / f"{rule.op}.toml").read_text())["calibration"]
    return {(e["device"], e["format"], e["engine"]): e["constants"] for e in entries if "device" in e}


def scores(rule: Rule, group: Group, constants: Mapping[str, float]) -> dict[str, Floats]:
    """predicted / measured on the test rows by every predictor."""
    fitted, tested = group.on(FIT), group.on(TEST)
    vector = rule.vector(constants)
    simple = _baseline(rule, fitted, vector)
    rows = rule.rows(tested.columns, tested.machine, vector)
    trees = residual_of(group.device.name, rule.op, group.format, group.engine)
    learned = rows[0]
    if trees is not None and rule.features is not None:
        learned = rows[0] * correction(rule.features(tested.columns, tested.machine, vector), trees)
    return {
        "roofline": np.maximum(rows[1], rows[2]) / tested.time_s,
        "3 constants": simple(rows[1], rows[2]) / tested.time_s,
        "physics": rows[0] / tested.time_s,
        "with trees": learned / tested.time_s,
    }


def _baseline(rule: Rule, fitted: Group, vector: Floats) -> Callable[[Floats, Floats], Floats]:
    rows = rule.rows(fitted.columns, fitted.machine, vector)
    return baseline((rows[1], rows[2]), fitted.time_s)


def line(labels: tuple[str, str, str], found: Mapping[str, Floats]) -> str:
    """One line of the table."""
    cells = [*labels, str(len(found["physics"])), *(errors(ratio) for ratio in found.values())]
    return f"| {' | '.join(cells)} | {np.median(found['with trees']):.2f} |"


def report(rule: Rule, data: Path) -> None:
    """The table of one op."""
    tables = [read_groups(data / "kernels" / f"{name}.csv.gz", rule) for name in FILES.get(rule.op, ("mla",))]
    groups, screened = [g for found, _ in tables for g in found], sum(count for _, count in tables)
    constants = constants_of(rule)
    print(f"\n### {rule.op}\n\n{screened} rows beat a datasheet bound and are left out.\n\n{HEAD}\n|{'---|' * 9}")
    every: list[dict[str, Floats]] = []
    for group in groups:
        key = (group.device.name, group.format, group.engine)
        every.append(scores(rule, group, constants[key]))
        print(line(key, every[-1]), flush=True)
    print(line(("all", "", ""), {name: np.concatenate([e[name] for e in every]) for name in every[0]}))


def main() -> None:
    """All ops, one table each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / ".." / "shared" / "data")
    arguments = parser.parse_args()
    for rule in (PREFILL, DECODE, LATENT_PREFILL, LATENT_DECODE, *ABSORB):
        report(rule, arguments.data)


if __name__ == "__main__":
    main()

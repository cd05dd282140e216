"""Score every measured table on its test rows, beside two simple baselines; write the page and the numbers.

    python tools/scorecard.py --data ../shared/data

writes docs/scorecard.md, docs/scorecard.svg and src/orrery/evidence/accuracy.toml. Rows that fit constants or set
intervals do not count; rows that beat a physical bound are left out by that bound and counted.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines import FEWEST, ROOFLINE, Run, fit_runs, kernel_baselines, read_run, run_metric
from fit.accuracy_tables import write_tables
from orrery.base.errors import OrreryError
from orrery.base.files import write_atomically
from orrery.catalog.devices import get_device
from orrery.evidence.accuracy import read_tables
from orrery.evidence.check import check_table
from orrery.evidence.checked import Checked
from orrery.evidence.columns import states_anything
from orrery.evidence.metrics import FITS
from orrery.evidence.split import FIT, TEST, sides_of
from orrery.evidence.tables import read_table
from scorecard_campaigns import BY_CAMPAIGN
from scorecard_campaigns import summary as campaign_summary
from scorecard_diffusion import KEY as PICTURES
from scorecard_diffusion import diffusion_summary
from scorecard_goals import summary
from scorecard_page import write_page
from scorecard_plot import draw
from scorecard_rl import rl_metrics
from scorecard_rows import Counts, Mask, Scored, Words
from scorecard_training import STEP, training_metrics, training_tables
from scorecard_unseen import BATCHES, section

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
START, END = "<!-- scorecard:start -->", "<!-- scorecard:end -->"
LEFT_OUT = "training, a device left out"
GROUND_TRUTH = "ground truth"
"""In that file, what tools/fit/training_left_out.py and tools/ground_truth.py found; kept as it is, like what
tools/fit/engines.py found of campaigns."""

Floats = NDArray[np.float64]


def kernel_metrics(checked: Checked, side: Words, counts: Counts) -> Iterator[Scored]:
    """The times of a table of kernels or collectives."""
    table = checked.table
    op = np.where(table.words("op") != "", table.words("op"), table.words("collective"))
    engine = np.where(table.words("engine") != "", table.words("engine"), table.words("library"))
    cache = table.words("kv_format")
    format = np.where(cache == "", table.words("format"), np.char.add(np.char.add(table.words("format"), "+"), cache))
    words = {"op": op, "device": table.words("device"), "format": format, "engine": engine}
    keys = np.array(["|".join(row) for row in zip(*words.values(), strict=True)])
    known = checked.scored("time_s")
    beats = known & checked.beats_bound()
    roofline, closed = kernel_baselines(checked, keys, (side == FIT) & ~beats)
    counts.screened = int((beats & (side == TEST)).sum())
    physics = check_table(table, is_learned=False).answers.predicted
    yield _scored(checked, "time_s", known & ~beats & (side == TEST), words, roofline, closed, physics["time_s"])
    if (drawn := checked.scored("power_w") & (side == TEST)).any():
        limit = {d: get_device(d).power_limit_w for d in np.unique(words["device"][drawn]).tolist()}
        nameplate = np.array([limit.get(d, np.nan) for d in words["device"].tolist()])
        nobody = np.full(len(table), np.nan)
        yield _scored(checked, "power_w", drawn, words, nameplate, nobody, physics["power_w"])


def serving_metrics(checked: Checked, side: Words, counts: Counts) -> Iterator[Scored]:
    """Every metric that a table of serving runs measures, but those that are arithmetic on others."""
    table = checked.table
    words = {c: table.words(c) for c in ("mode", "engine", "engine_version", "device", "model", "weights_format")}
    runs = _runs(checked)
    beats = checked.beats_bound()
    counts.screened = int((beats & (side == TEST)).sum())
    static, is_open = words["mode"] == "static", words["mode"] == "open"
    closed_loop = words["mode"] == "closed"
    for metric in checked.answers.predicted:
        known = checked.scored(metric) & ~beats
        if metric == "total_tokens_per_s":
            known &= ~static if "latency_s" in checked.measured else True
        if metric in ("output_tokens_per_s", "requests_per_s", "total_tokens_per_s"):
            known &= ~is_open  # set by the arrivals
            if metric != "output_tokens_per_s":
                known &= ~closed_loop & (metric not in ("requests_per_s", "total_tokens_per_s"))
        if not (known & (side == TEST)).any():
            continue
        if metric == FITS:
            roofline = closed = np.full(len(table), np.nan)
        else:
            roofline, closed = _run_baselines(runs, metric, checked.measured[metric], known, side, words["engine"])
        yield _scored(checked, metric, known & (side == TEST), words, roofline, closed)


def _scored(
    checked: Checked,
    metric: str,
    rows: Mask,
    words: dict[str, Words],
    roofline: Floats,
    closed: Floats,
    physics: Floats | None = None,
) -> Scored:
    measured = checked.measured[metric]
    predicted = checked.answers.predicted[metric]
    if metric == FITS:  # 1 where foreseen, so that the relative error is 0 or 1
        predicted, measured = 1.0 + checked.error(FITS, np.ones(len(measured), dtype=bool)), np.ones(len(measured))
    everything = Scored(
        table=checked.table.name,
        kind=str(checked.table.words("kind")[0]),
        metric=metric,
        words=words,
        measured=measured,
        ours=predicted,
        roofline=roofline,
        closed=closed,
        physics=predicted if physics is None else physics,
        inside_80=checked.answers.inside(metric, measured, 80),
        inside_95=checked.answers.inside(metric, measured, 95),
    )
    return everything.take(rows)


def _runs(checked: Checked) -> dict[int, Run]:
    """What the baselines know of each answered row."""
    found: dict[int, Run] = {}
    for row in np.flatnonzero(checked.counted):
        if int(row) not in checked.answers.declined:
            try:
                found[int(row)] = read_run({c: v[row] for c, v in checked.table.columns.items()})
            except OrreryError:
                continue
    return found


def _run_baselines(
    runs: dict[int, Run], metric: str, measured: Floats, known: Mask, side: Words, engine: Words
) -> tuple[Floats, Floats]:
    roofline, closed = np.full(len(measured), np.nan), np.full(len(measured), np.nan)
    plain = metric.removesuffix("_p50")
    rows = [r for r in np.flatnonzero(known) if int(r) in runs]
    for row in rows:
        roofline[row] = run_metric(ROOFLINE, runs[int(row)], plain)
    if not np.isfinite(roofline[rows]).any():
        return roofline, closed
    pool = [r for r in rows if side[r] == FIT]
    for name in np.unique(engine[rows]):
        mine = [r for r in pool if engine[r] == name]
        fit = mine if len(mine) >= FEWEST else pool
        if len(fit) >= FEWEST:
            fit = fit[:: max(1, len(fit) // 150)]
            constants = fit_runs([runs[int(r)] for r in fit], [plain] * len(fit), [float(measured[r]) for r in fit])
            for row in (r for r in rows if engine[r] == name):
                closed[row] = run_metric(constants, runs[int(row)], plain)
    return roofline, closed


def score_tables(data: Path) -> tuple[list[Scored], dict[str, Counts]]:
    """Every table under ``data``, on its test rows."""
    scored: list[Scored] = []
    counts: dict[str, Counts] = {}
    for path in sorted([*(data / "kernels").glob("*.csv*"), *(data / "serving").glob("*.csv*")]):
        started = time.perf_counter()
        table = read_table(path)
        if not any(states_anything(table, kind) for kind in set(table.words("kind").tolist())):
            print(f"{path.name}: no column of it is a measurement that is predicted", flush=True)
            continue
        checked = check_table(table)
        side = sides_of(checked.table)
        count = counts[path.name] = counts_of(checked, side)
        if checked.answers.predicted:
            of = serving_metrics if "serving" in checked.table.words("kind") else kernel_metrics
            scored += of(checked, side, count)
        print(f"{path.name}: {count.rows} rows, {time.perf_counter() - started:.1f} s", flush=True)
    started = time.perf_counter()
    tables = training_tables(data)
    counts |= {t.checked.table.name: counts_of(t.checked, t.side) for t in tables}
    scored += training_metrics(tables)
    scored += rl_metrics([t.checked for t in tables])
    print(f"training: {sum(len(t.rows) for t in tables)} rows, {time.perf_counter() - started:.1f} s", flush=True)
    return scored, counts


def counts_of(checked: Checked, side: Words) -> Counts:
    """How many rows a table has, how many of them are for the test, and which were declined."""
    count = Counts(rows=int(checked.counted.sum()), test=int((checked.counted & (side == TEST)).sum()))
    for row, reason in checked.answers.declined.items():
        if checked.counted[row]:
            count.declined[reason] = count.declined.get(reason, 0) + 1
    return count


def accuracy(scored: list[Scored], counts: dict[str, Counts], retained: dict[str, Any]) -> dict[str, Any]:
    """The checked-in numbers: one table for each metric of each measured table, with its groups; and of ``retained``
    what other tools found."""
    entries: dict[str, Any] = {}
    for s in scored:
        table = entries.setdefault(
            s.table,
            {
                "rows": counts[s.table].rows,
                "screened": counts[s.table].screened,
                "declined": sum(counts[s.table].declined.values()),
            },
        )
        by = next(word for word in ("op", "mode", "framework") if word in s.words)
        table[s.metric] = {str(word): _entry(s.take(s.words[by] == word)) for word in np.unique(s.words[by])}
    return entries | {key: table for key, table in retained.items() if ".csv" not in key}


def _entry(s: Scored) -> dict[str, float | int]:
    ours, physics = s.score(), s.score("physics")
    values = {
        "median": ours.median_abs_error_frac,
        "mean": ours.mean_abs_error_frac,
        "p90": ours.p90_abs_error_frac,
        "bias": ours.bias_frac,
        "covered_80": ours.covered_80_frac,
        "covered_95": ours.covered_95_frac,
    }
    if (s.physics != s.ours).any():
        values |= {
            "physics_median": physics.median_abs_error_frac,
            "physics_mean": physics.mean_abs_error_frac,
            "physics_p90": physics.p90_abs_error_frac,
            "physics_bias": physics.bias_frac,
        }
    return {"rows": ours.rows} | {k: round(v, 4) for k, v in values.items() if v is not None}


def with_summary(readme: str, table: str) -> str:
    """The README with the table between its two marks."""
    before, _, rest = readme.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{table}\n{END}{after}"


def main() -> None:
    """Score, write, and say where."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of measured tables")
    data = parser.parse_args().data
    if not (data / "kernels").is_dir():
        raise SystemExit(f"There are no measured tables under {data}; give their folder with --data.")
    scored, counts = score_tables(data)
    retained = read_tables()
    left_out, truth = retained.get(LEFT_OUT, {}).get(STEP, {}), retained.get(GROUND_TRUTH, {})
    campaigns, pictures = retained.get(BY_CAMPAIGN, {}), retained.get(PICTURES, {})
    unseen = {key: entry for key, entry in retained.items() if key.startswith("unseen")}
    write_tables(accuracy(scored, counts, retained))
    write_atomically(ROOT / "docs" / "scorecard.svg", draw(scored))
    afterwards = "".join(section(batch, unseen) for batch in BATCHES if batch.key in unseen)
    page = write_page(scored, counts, left_out, truth, campaigns, pictures, afterwards, retained)
    write_atomically(ROOT / "docs" / "scorecard.md", page)
    table = "\n".join([summary(scored), *diffusion_summary(pictures), "", *campaign_summary(campaigns, scored)])
    write_atomically(README, with_summary(README.read_text(encoding="utf-8"), table))
    print("wrote docs/scorecard.md, docs/scorecard.svg and src/orrery/evidence/accuracy.toml")


if __name__ == "__main__":
    main()

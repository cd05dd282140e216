"""The scorecard as a Markdown page."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from orrery.evidence.metrics import FITS
from scorecard_campaigns import TEXT, Campaigns
from scorecard_campaigns import lines as campaign_lines
from scorecard_diffusion import TEXT as PICTURES
from scorecard_diffusion import Errors as Pictures
from scorecard_diffusion import diffusion_lines
from scorecard_goals import goals
from scorecard_left_out import left_out_section
from scorecard_rows import Counts, Scored, join
from scorecard_training import STEP

INTRO = """# Scorecard

How far orrery is from measurements that it has not seen. `make scorecard` writes this page again from the measured
tables; the same numbers stand in `src/orrery/evidence/accuracy.toml`, so that a change shows in every diff.

Each table is split by a hash of the weight shape, layer or model: 20 % of the shapes fit constants, 20 % set the
intervals (of serving runs both fit constants, and campaigns left out set the intervals), and only the other 60 %, the
**test rows**, are scored here. No shape stands on two sides. But rows of one source do: what that hides of serving
runs, [campaigns left out](#serving-runs-a-campaign-left-out) show. Rows that beat a
physical bound (the datasheet's peak arithmetic; its bandwidth for bytes that no cache can hold; for a static batch,
reading all active weights once per token) are left out because of the bound, never because of their error, and
counted at the end.

Errors are *predicted / measured - 1*; a cell says **median / mean / 90th percentile** of its size, in percent.
*Bias* is the median with its sign. *80 %* and *95 %* are the shares of measurements inside the predicted intervals. The
two rivals are the **roofline** (the datasheet alone) and a **closed form** with five constants, fitted on the same rows
for each device, format and engine (serving: for each engine; training: for each device generation and precision, over
all tables). *Physics alone* is orrery's kernel rule with its fitted
constants but without the small learned correction that some ops carry on top; where the cell is empty there is none.
"""

TRAINING = f"""
`{STEP}` is the time of a step from whichever metric of time a row states (a step, a micro-batch, or tokens a second and
device), so that each run counts once; the other metrics are listed as the rows state them. The roofline is the
operations of the step, recomputed ones included, at the dense peak of the recipe's format on all devices. The closed
form is

    t = c0 + flops / (c1 x peak) x (1 + c2 (pp - 1) / (m vp))
           + c3 x tensor bytes / bandwidth + c4 x gradient bytes / bandwidth

with the flops of one device, m micro-batches, four all-reduces of a layer's activations, and one of the gradients. No
row is left out for beating the roofline here: what a row leaves unsaid decides its operations. Neither rival says
anything of memory.
"""

LEFT_OUT = """
All constants are fitted again without the rows of one device, and its test rows are scored. Where it says *frameworks
known*, only what speaks of its generation is fitted again, from the other devices or pooled, and what is known of each
framework's host stays; the device's own fit rows had a part in that.
`python tools/fit/training_left_out.py --data ../shared/data` finds these numbers (a cell: median / mean / 90th
percentile).
"""

GROUND_TRUTH = """
A machine is calibrated by ten measurements; then real work on it is predicted, and done: see
[Ground truth](ground-truth.md). `python tools/ground_truth.py` finds these numbers on the machine that it runs on (a
cell: median / mean / 90th percentile).
"""

LEARNED = """
Kernels whose physical rule carries a learned correction on some device: all their test rows, corrected or not. What was
learned, by which error it was chosen, and what was not taken: [learned predictors](models/learned.md).
"""

COLUMNS = "rows | roofline | five constants | physics alone | **orrery** | bias | 80 % | 95 %"


Errors = Mapping[str, Mapping[str, float]]
"""By a word, its rows, median, mean, p90 and bias."""


def write_page(
    scored: Sequence[Scored],
    counts: dict[str, Counts],
    left_out: Errors,
    truth: Mapping[str, Errors],
    campaigns: Campaigns,
    pictures: Pictures,
    afterwards: str,
    retained: Mapping[str, Any],
) -> str:
    """The whole page; ``left_out`` has the errors on devices that had no part in any fit, ``truth`` those of real work
    on a machine that was calibrated, by metric, ``campaigns`` those of serving campaigns without a part in any fit,
    ``pictures`` those of diffusion models without one, ``afterwards`` is the section of runs that no fit reads,
    ``retained`` is the accuracy file, for what is known of devices left out."""
    kernels = [s for s in scored if "op" in s.words and s.metric == "time_s"]
    power = [s for s in scored if "op" in s.words and s.metric == "power_w"]
    serving = [s for s in scored if "mode" in s.words]
    training = [s for s in scored if s.kind == "training" and s.metric != FITS]
    fits = [s for s in scored if s.kind == "training" and s.metric == FITS]
    parts = [
        INTRO,
        "![Predicted against measured](scorecard.svg)\n",
        "## Goals\n",
        *goals(scored, left_out),
        "\n## Kernels and collectives\n",
        *by_words(kernels, ("table", "op")),
        "\n### Power of kernels\n",
        "Mean power of the board while one kernel repeats; the rival in the roofline's column is the power limit.\n",
        *by_words(power, ("op", "device", "format")),
        "\n### Physics alone, and with what was learned\n",
        LEARNED.strip() + "\n",
        *learned_lines(kernels + power),
        *left_out_section(retained),
        "\n## Serving runs\n",
        "Rates of open runs are set by the arrivals, and the total rate of a static batch is its latency in other "
        "words; neither is scored.\n",
        *by_words(serving, ("table", "metric", "mode")),
        "\n### By engine\n",
        *by_words(serving, ("table", "metric", "mode", "engine", "engine_version")),
        "\n### By device\n",
        *by_words(serving, ("metric", "mode", "device")),
        "\n## Serving runs, a campaign left out\n",
        TEXT.strip() + "\n",
        *campaign_lines(campaigns),
        "",
        *([afterwards.rstrip("\n") + "\n"] if afterwards else []),
        "## Training runs\n",
        TRAINING.strip() + "\n",
        *by_words(training, ("table", "metric")),
        "\n### By framework, device and precision\n",
        *by_words([s for s in training if s.metric == STEP], ("framework", "device", "precision")),
        "\n### Whether a run fits\n",
        *outcomes(fits),
        "\n### A device left out\n",
        LEFT_OUT.strip() + "\n",
        *left_out_lines(left_out),
        "\n## RL steps\n",
        "Steps of RL post-training, rollouts included; nothing was fitted on them.\n",
        *by_words([s for s in scored if s.kind == "rl"], ("table", "metric", "device", "rl_policy")),
        "\n## Images and videos, a model left out\n",
        PICTURES.strip() + "\n",
        *diffusion_lines(pictures),
        "\n## Ground truth\n",
        GROUND_TRUTH.strip() + "\n",
        *truth_lines(truth),
        "\n## Kernels by device, format and engine\n",
        *by_words(kernels, ("op", "device", "format", "engine")),
        "\n## Rows that were not scored\n",
        *not_scored(counts),
    ]
    return "\n".join(parts).rstrip() + "\n"


def by_words(scored: Sequence[Scored], names: Sequence[str]) -> list[str]:
    """One line for every combination of words."""
    groups: dict[tuple[str, ...], list[Scored]] = {}
    for s in scored:
        columns = [_column(s, n) for n in names]
        for key in sorted(set(zip(*columns, strict=True))):
            mask = np.all([c == k for c, k in zip(columns, key, strict=True)], axis=0)
            groups.setdefault(key, []).append(s.take(mask))
    head = [f"| {' | '.join(n.replace('_', ' ') for n in names)} | {COLUMNS} |", "|" + "---|" * (len(names) + 8)]
    return head + [_line(key, join(parts)) for key, parts in sorted(groups.items())]


def learned_lines(scored: Sequence[Scored]) -> list[str]:
    """Per metric and op that trees correct somewhere: the physics beside orrery."""
    groups: dict[tuple[str, str], list[Scored]] = {}
    for s in scored:
        for op in np.unique(s.words["op"]):
            groups.setdefault((s.metric, str(op)), []).append(s.take(s.words["op"] == op))
    lines = [
        "| metric | op | rows | corrected | physics alone | bias | **orrery** | bias | 80 % | 95 % |",
        "|" + "---|" * 10,
    ]
    for (metric, op), parts in sorted(groups.items()):
        whole = join(parts)
        if (is_corrected := whole.physics != whole.ours).any():
            ours, physics = whole.score(), whole.score("physics")
            lines.append(
                f"| `{metric}` | `{op}` | {ours.rows:,} | {_share(float(is_corrected.mean()))} % "
                f"| {_three(whole, 'physics')} | {100 * physics.bias_frac:+.1f} | **{_three(whole, 'ours')}** "
                f"| {100 * ours.bias_frac:+.1f} | {_share(ours.covered_80_frac)} | {_share(ours.covered_95_frac)} |"
            )
    return lines


def _column(s: Scored, name: str) -> np.ndarray:
    own = {"table": s.table.removesuffix(".gz").removesuffix(".csv"), "metric": s.metric}
    return np.full(len(s.measured), own[name], dtype=object) if name in own else s.words[name].astype(object)


def _line(key: Iterable[str], s: Scored) -> str:
    ours = s.score()
    cells = [
        *(f"`{k}`" if k else "" for k in key),
        f"{ours.rows:,}",
        _three(s, "roofline"),
        _three(s, "closed"),
        _three(s, "physics") if (s.physics != s.ours).any() else "",
        f"**{_three(s, 'ours')}**",
        f"{100 * ours.bias_frac:+.1f}",
        _share(ours.covered_80_frac),
        _share(ours.covered_95_frac),
    ]
    return f"| {' | '.join(cells)} |"


def _three(s: Scored, who: str) -> str:
    found = s.score(who)
    if not found.rows:
        return ""
    values = (found.median_abs_error_frac, found.mean_abs_error_frac, found.p90_abs_error_frac)
    return " / ".join(f"{100 * v:.1f}" if v < 10 else f"{100 * v:.0f}" for v in values)


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f}"


def outcomes(fits: Sequence[Scored]) -> list[str]:
    """Per table and outcome: how many runs, and how many were foreseen."""
    lines = ["| table | outcome | rows | foreseen |", "|---|---|---|---|"]
    for s in fits:
        for outcome in np.unique(s.words["outcome"]):
            right = s.take(s.words["outcome"] == outcome).ours == 1.0
            lines.append(f"| `{s.table.removesuffix('.csv')}` | {outcome} | {right.size} | {int(right.sum())} |")
    return lines


def left_out_lines(left_out: Errors) -> list[str]:
    """Per device: its test rows, and the errors without it."""
    lines = ["| device left out | rows | **orrery** | bias |", "|---|---|---|---|"]
    for device, e in left_out.items():
        cells = " / ".join(f"{100 * e[k]:.1f}" for k in ("median", "mean", "p90"))
        lines.append(f"| `{device}` | {e['rows']:,} | **{cells}** | {100 * e['bias']:+.1f} |")
    return lines


def truth_lines(truth: Mapping[str, Errors]) -> list[str]:
    """Per kind of work and metric."""
    lines = ["| work | metric | cases | **orrery** | bias | in 80 % |", "|---|---|---|---|---|---|"]
    for metric, groups in truth.items():
        for group, e in groups.items():
            cells = " / ".join(f"{100 * e[k]:.1f}" for k in ("median", "mean", "p90"))
            covered = f"{100 * e['covered_80']:.0f}"
            lines.append(f"| {group} | `{metric}` | {e['rows']} | **{cells}** | {100 * e['bias']:+.1f} | {covered} |")
    return lines


def not_scored(counts: dict[str, Counts]) -> list[str]:
    """Per table: how many rows, how many are for the test, left out by a bound, and declined with the reasons."""
    lines = ["| table | rows | test rows | beat a bound | declined | why |", "|---|---|---|---|---|---|"]
    for name, count in sorted(counts.items()):
        reasons = sorted(count.declined.items(), key=lambda r: -r[1])
        why = "; ".join(f"{reason} ({rows})" for reason, rows in reasons[:4])
        more = f"; and {len(reasons) - 4} more reasons" if len(reasons) > 4 else ""
        lines.append(
            f"| `{name}` | {count.rows:,} | {count.test:,} | {count.screened:,} "
            f"| {sum(count.declined.values()):,} | {why}{more} |"
        )
    return lines

"""Scores by campaign: errors and intervals of rows that no constant and no width had seen, beside two rivals."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from campaign_folds import NOTHING
from engine_rows import Measured, kind_of
from engine_scores import REPORTED, PredictedValue
from engine_widths import FACTORS, Widths, calibrated, errors_of, widths

from orrery.base.cost import Spread
from orrery.base.errors import OrreryError
from orrery.evidence.score import score_errors
from orrery.serving.extrapolation import wider_by
from orrery.serving.intervals import Factors, ratios_of

sys.path.append(str(Path(__file__).resolve().parents[1]))  # the scorecard's rivals and words
from baselines import FEWEST, ROOFLINE, Run, fit_runs, read_run, run_metric
from scorecard_campaigns import BY_CAMPAIGN

__all__ = ["BY_CAMPAIGN", "scores"]

METRICS = ("tpot_s", "ttft_s", "latency_s", "output_tokens_per_s", "power_w")
BASELINE_ROWS = 60
"""Other campaigns' rows that fit the five constants, taken evenly."""


def scores(description: Sequence[PredictedValue]) -> dict[str, dict[str, Any]]:
    """By metric and campaign: rows, what was left out, errors of orrery and of the rivals, and the intervals."""
    inside, half = intervals(description)
    rivals = baselines(description)
    out: dict[str, dict[str, Any]] = {}
    for metric in METRICS:
        chosen = [i for i, t in enumerate(description) if t.metric == metric and not _is_given(t)]
        for campaign in sorted({description[i].row.campaign for i in chosen}):
            for what in sorted({description[i].what for i in chosen if description[i].row.campaign == campaign}):
                rows = [i for i in chosen if description[i].row.campaign == campaign and description[i].what == what]
                name = campaign if what != REPORTED else f"{campaign} ({REPORTED})"
                out.setdefault(metric, {})[name] = _entry(
                    [description[i] for i in rows], rivals[rows], inside[rows], half[rows]
                )
    return out


def _is_given(t: PredictedValue) -> bool:
    """A rate of arrivals that is served in time is no prediction."""
    return t.row.workload.mode == "open" and t.metric == "output_tokens_per_s"


def _entry(
    description: Sequence[PredictedValue], rivals: np.ndarray, inside: np.ndarray, half: np.ndarray
) -> dict[str, Any]:
    measured = np.array([t.measured for t in description])
    ours = score_errors(np.array([t.left_out for t in description]) / measured - 1.0)
    shipped = np.array([t.shipped for t in description]) / measured - 1.0
    row = description[0].row
    values = {
        "median": ours.median_abs_error_frac,
        "p90": ours.p90_abs_error_frac,
        "bias": ours.bias_frac,
        "shipped_median": float(np.nanmedian(np.abs(shipped))),
        "covered_80": float(np.nanmean(inside)),
        "half_width": float(np.nanmedian(half)),
    }
    for name, predicted in zip(("roofline_median", "closed_median"), rivals.T, strict=True):
        if np.isfinite(predicted).any():
            values[name] = float(np.nanmedian(np.abs(predicted / measured - 1.0)))
    words = {
        "rows": len(description),
        "left_out": description[0].what,
        "mode": row.workload.mode,
        "pools": len(row.service.pools),
    }
    return words | {k: round(v, 4) for k, v in values.items() if np.isfinite(v)}


def intervals(description: Sequence[PredictedValue]) -> tuple[np.ndarray, np.ndarray]:
    """Whether each 80 % interval holds its measurement, and half its width, by widths that never saw its campaign; only
    the one factor on all levels is of all campaigns."""
    errors = {factor: errors_of(description, factor) for factor in FACTORS}
    everything = {factor: calibrated(e) for factor, e in errors.items()}
    inside, half = np.zeros(len(description)), np.zeros(len(description))
    for campaign in sorted({t.row.campaign for t in description}):
        mine = {f: e.campaign == campaign for f, e in errors.items()}
        learned = {
            f: widths(e.take(~mine[f]), everything[f].stretch) if mine[f].any() else everything[f]
            for f, e in errors.items()
        }
        for i, t in enumerate(description):
            if t.row.campaign == campaign:
                ratio = ratios_of(t.figures, factors_by(learned, t), t.bounds).get(t.metric)
                if ratio is not None:
                    truth = t.measured / t.left_out
                    inside[i] = ratio.low_80_ratio <= truth <= ratio.high_80_ratio
                    half[i] = (ratio.high_80_ratio - ratio.low_80_ratio) / 2
                else:
                    inside[i] = half[i] = np.nan
    return inside, half


def factors_by(learned: Mapping[str, Widths], t: PredictedValue) -> Factors:
    """The factors of one answer by such widths."""
    wider, _ = wider_by(t.doubt, has_version=bool(t.row.deployment.engine.version))

    def of(factor: str) -> Spread:
        ends = learned[factor].spread(kind_of(t.row), t.path)
        return Spread(**{f"{k}_ratio": v for k, v in ends.items()}).widened(wider, "")

    return Factors(pace=of("tpot_s"), first=of("ttft_s"), power=of("power_w"))


def baselines(description: Sequence[PredictedValue]) -> np.ndarray:
    """Roofline and five constants for every value; the constants from other campaigns' runs of the engine."""
    runs = {id(t.row): _run(t.row) for t in description}
    out = np.full((len(description), 2), np.nan)
    for metric in METRICS:
        rows = [i for i, t in enumerate(description) if t.metric == metric and runs[id(t.row)] is not None]
        for i in rows:
            out[i, 0] = run_metric(ROOFLINE, runs[id(description[i].row)], metric)  # type: ignore[arg-type]
        if not np.isfinite(out[rows, 0]).any():
            continue
        for fold in sorted({description[i].fold for i in rows}):
            mine = [i for i in rows if description[i].fold == fold]
            engine = description[mine[0]].row.deployment.engine.name
            is_held = description[mine[0]].what not in (NOTHING, REPORTED)
            others = [
                i for i in rows if not description[i].row.excluded and (description[i].fold != fold or not is_held)
            ]
            own = [i for i in others if description[i].row.deployment.engine.name == engine]
            chosen = own if len(own) >= FEWEST else others
            chosen = chosen[:: max(1, len(chosen) // BASELINE_ROWS)]
            if len(chosen) >= FEWEST:
                found = [runs[id(description[i].row)] for i in chosen]
                constants = fit_runs(found, [metric] * len(chosen), [description[i].measured for i in chosen])  # type: ignore[arg-type]
                for i in mine:
                    out[i, 1] = run_metric(constants, runs[id(description[i].row)], metric)  # type: ignore[arg-type]
    return out


def _run(row: Measured) -> Run | None:
    """What the rivals know of a run; nothing of several pools."""
    try:
        return read_run(dict(row.cells))
    except OrreryError:
        return None

"""HELP: how ten timings on unseen kinds of machines rank networks, against multiply-adds and a start from nothing."""

from collections.abc import Iterator
from statistics import mean

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.predictors.studies.few_shot_latency import EMBEDDING, EXPERIMENT, SCRATCH

FLOPS = "flops-line"


ALIKE = "the machines, which are simulated by one set of rules and so more alike than real ones ([unstated] devices)"

SEEDS = 3
"""Runs of teaching: which machines are drawn moves a run's rank correlation by a few hundredths."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Means over simulated machines of kinds that were not learnt from, and over seeds of teaching."""
    runs = [_scores(int(paper.setups["nas-bench-201"].number("num_steps")), seed) for seed in range(SEEDS)]
    rank, least, error = (
        {name: mean(run[name][key] for run in runs) for name in runs[0]}
        for key in ("rank_correlation", "least_rank_correlation", "median_error_frac")
    )
    ours = sorted(run[EMBEDDING]["rank_correlation"] for run in runs)
    yield Prediction(
        claim="rank-correlation",
        predicted=rank[EMBEDDING],
        because=f"{ours[0]:.3f} to {ours[-1]:.3f} over {SEEDS} seeds of {runs[0][EMBEDDING]['num_machines']:.0f} "
        f"machines, the worst of a seed {least[EMBEDDING]:.3f}; median error {percent(error[EMBEDDING], 1)}",
        differs=ALIKE,
    )
    yield Prediction(
        claim="flops-rank-correlation",
        predicted=rank[FLOPS],
        because=f"the worst {least[FLOPS]:.3f}, where launches hide kernels",
        differs=ALIKE,
    )
    yield Prediction(
        claim="over-flops",
        predicted=rank[EMBEDDING] / rank[FLOPS],
        because="the embedding tells what limits a machine; multiply-adds do not",
    )
    yield Prediction(
        claim="over-scratch",
        predicted=rank[EMBEDDING] / rank[SCRATCH],
        because=f"{rank[SCRATCH]:.2f} from nothing, {rank['encoded-line']:.2f} by a straight line; the physics refit, "
        f"which knows data sheet and rules, {rank['physics-refit']:.3f}",
    )


def _scores(steps: int, seed: int) -> dict[str, dict[str, float]]:
    """Scores of every rule over all machines of one run."""
    rows = EXPERIMENT(steps=steps, seed=seed)
    numbers = ("num_machines", "rank_correlation", "least_rank_correlation", "median_error_frac")
    return {str(r["rule"]): {n: float(r[n]) for n in numbers} for r in rows if r["machines"] == "all"}

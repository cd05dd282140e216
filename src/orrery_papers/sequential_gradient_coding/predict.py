"""Sequential gradient coding: total time of three schemes over one trace of 256 workers, and their loads."""

from collections.abc import Iterator, Mapping
from statistics import NormalDist

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment

LATE_FRAC, LEAVE_FRAC = 0.03, 0.97  # see [unstated] stragglers, bursts
SCATTER_RATIO = 1.05  # see [unstated] scatter
SEEDS = 5

DIFFERS = {
    "time_reduction": "stragglers that are late twice in a row make the multiplexed scheme wait; the trace behind the "
    "16 % was not read, and without stragglers the loads alone give 14 %",
    "run_time_selective": "distinct stragglers of three rounds pass 23 in this trace more often than in the authors'",
    "run_time_multiplexed": "where the master waits on it does so for some workers here, and for all of them there",
}
"""Explanations of a difference, by metric."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Loads, totals, and the reduction of the multiplexed scheme."""
    found = rows(paper.setups["lambda-256"])
    for name, claim in (("gradient", "plain"), ("selective", "selective"), ("multiplexed", "multiplexed")):
        yield Prediction(
            claim=f"load-{claim}",
            predicted=found[name]["load_frac"],
            because="data that a worker computes on in a round",
        )
    for name in ("selective", "multiplexed"):
        yield Prediction(
            claim=f"profile-{name}",
            predicted=found[name]["total_s"],
            differs=DIFFERS[f"run_time_{name}"],
            because=f"rounds of a trace with {percent(LATE_FRAC)} stragglers, waiting on where they are too many",
        )
    for claim in ("headline", "profile-reduction"):
        yield Prediction(
            claim=claim,
            predicted=1.0 - found["multiplexed"]["total_s"] / found["gradient"]["total_s"],
            differs=DIFFERS["time_reduction"],
            because="total time of the multiplexed scheme against gradient coding over the same trace",
        )


def rows(setup: Setup, late_frac: float = LATE_FRAC) -> Mapping[str, Mapping[str, float]]:
    """``orrery experiment straggler-coding`` with the schemes as they were tuned, by scheme; means over seeds."""
    tuned = [part.split()[-3:] for part in setup.word("coding_parameters").split(";")]
    sizes = {
        "workers": f"{setup.number('num_workers'):.0f}",
        "gradient": tuned[0][-1],
        "selective": ":".join(tuned[1]),
        "multiplexed": ":".join(tuned[2]),
        "load_s": f"{setup.number('worker_load_s')!r}",
        "scatter_ratio": f"{SCATTER_RATIO!r}",
        "late_frac": f"{late_frac!r}",
        "leave_frac": f"{LEAVE_FRAC!r}",
        "wait_frac": f"{setup.number('wait_frac')!r}",
        **{name: f"{value!r}" for name, value in pace(setup).items()},
    }
    found = run_experiment(
        "straggler-coding",
        steps=int(setup.number("num_jobs")),
        seeds=SEEDS,
        sizes=[f"{name}={value}" for name, value in sizes.items()],
    )
    return {str(row["scheme"]): {k: float(v) for k, v in row.items() if k != "scheme"} for row in found.rows}


def pace(setup: Setup) -> Mapping[str, float]:
    """Workers whose fastest and slowest take what the totals of the baselines say; see [unstated] worker_times."""
    n, jobs, load_s = (setup.number(name) for name in ("num_workers", "num_jobs", "worker_load_s"))
    fastest_s = setup.number("baseline_run_s") / jobs / (1.0 + setup.number("wait_frac"))
    slowest_s = setup.number("uncoded_run_s") / jobs
    # the least of n normals, by Blom's approximation
    luckiest = SCATTER_RATIO ** -NormalDist().inv_cdf((n - 0.375) / (n + 0.25))
    plain_load = (float(setup.word("coding_parameters").split(";")[0].split()[-1]) + 1.0) / n
    fixed_s = fastest_s / luckiest - plain_load * load_s
    return {"fixed_s": fixed_s, "slow_ratio": slowest_s / (fixed_s + load_s / n)}

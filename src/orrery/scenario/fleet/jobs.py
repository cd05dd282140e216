"""Batch work beside a fleet: put into the hours of its run that cost least, within what the row leaves free."""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.fleet.hours.shift import Hours
from orrery.fleet.service.rate_curve import HOUR_S
from orrery.fleet.service.result import FRAME, FleetRun
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.by_hour import ByHour, by_region_of_run, drawn_until_j, pue_ratio
from orrery.scenario.fleet.read import FleetInputs
from orrery.scenario.shift import ShiftAnswer, ShiftQuestion, placed

OF_JOBS = ("row_limit_w", "usd_per_tonne")


def check_jobs(inputs: FleetInputs) -> None:
    """Refuse jobs without prices or carbon by the hour, and settings of jobs where there are none."""
    top = inputs.top
    if not top.job:
        if given := [name for name in OF_JOBS if getattr(top, name) is not None]:
            raise ScenarioError(f'{given[0]}: there are no jobs; write job = ["train=400"] beside it.')
        return
    if inputs.regions:
        _check_regions(inputs)
    elif inputs.hours is None:
        raise ScenarioError("job: is put into hours by their price or carbon; write hours = day.csv beside it.")
    if top.steady or top.survive is not None:
        raise ScenarioError("job: stands beside a simulated run; leave out steady and survive.")


def _check_regions(inputs: FleetInputs) -> None:
    """Refuse regions of which some have a price of electricity and others none: those would seem free."""
    priced = [bool(r.hours or r.usd_per_kwh) for r in inputs.regions]
    known = [is_priced or r.carbon_g_per_kwh is not None for is_priced, r in zip(priced, inputs.regions, strict=True)]
    if not all(known) or (any(priced) and not all(priced)):
        blank = inputs.regions[known.index(False) if not all(known) else priced.index(False)]
        raise ScenarioError(
            f"job: is put into the hours of all regions by price or carbon; write usd_per_kwh or carbon_g_per_kwh in "
            f"region {blank.name} as in the others."
        )


def region_jobs_of(inputs: FleetInputs, run: FleetRun) -> ShiftAnswer | InfeasibleAnswer | None:
    """The jobs of a fleet in the hours of all its regions, each row with the limit; None where there are none."""
    top, regions = inputs.top, run.setup.regions
    if not top.job or regions is None:
        return None
    found = [by_hour for by_hour in by_region_of_run(run).values() if by_hour is not None]
    pue = np.array([r.pue_ratio for r in regions.regions])[:, None]
    whole = found[0].whole_hours
    _check_whole(whole)

    def table(name: str) -> np.ndarray:
        return np.array([getattr(by_hour, name)[whole] for by_hour in found])

    hours = Hours(
        length_s=HOUR_S,
        base_w=(table("energy_j") / pue / HOUR_S).reshape(-1),
        usd_per_j=(table("usd_per_j") * pue).reshape(-1),
        carbon_g=(table("joule_carbon_g") * pue).reshape(-1),
        num_sites=len(found),
    )
    return placed(ShiftQuestion(job=top.job, row_limit_w=top.row_limit_w, usd_per_tonne=top.usd_per_tonne), hours)


def job_regions(answer: ShiftAnswer, run: FleetRun) -> dict[str, dict[str, float]]:
    """Joules of each job in each region, in the best hours."""
    regions = run.setup.regions
    if regions is None:
        return {}
    names = [r.name for r in regions.regions]
    hours = answer.hours
    joules = answer.best.job_w.reshape(len(answer.jobs), hours.num_sites, -1).sum(axis=2) * hours.length_s
    return {job.name: dict(zip(names, row.tolist(), strict=True)) for job, row in zip(answer.jobs, joules, strict=True)}


def _check_whole(whole: np.ndarray) -> None:
    if not whole.any():
        raise ScenarioError("job: the run has no whole hour of the clock; write days = 1, or start at a full hour.")


def jobs_of(inputs: FleetInputs, by_hour: ByHour | None) -> ShiftAnswer | InfeasibleAnswer | None:
    """The jobs of a fleet in the whole hours of its run; None where there are none."""
    top = inputs.top
    if not top.job or by_hour is None or inputs.hours is None:
        return None
    pue = pue_ratio(inputs)
    whole = by_hour.whole_hours
    _check_whole(whole)
    hours = Hours(
        length_s=HOUR_S,
        base_w=by_hour.energy_j[whole] / pue / HOUR_S,
        usd_per_j=by_hour.usd_per_j[whole],
        carbon_g=by_hour.joule_carbon_g[whole],
    )
    question = ShiftQuestion(job=top.job, row_limit_w=top.row_limit_w, usd_per_tonne=top.usd_per_tonne, pue=pue)
    return placed(question, hours)


def peak_power_w(*runs: FleetRun) -> float:
    """The highest mean power of devices and hosts between two samples of a run, or of several at once: between samples
    of the one that is sampled least."""
    end_s = max(run.end_s for run in runs)
    sampled = min((run.frames[:, FRAME.index("now_s")] for run in runs), key=len)
    at_s = np.unique(np.append(sampled, end_s))
    at_s = at_s[at_s <= end_s]
    lengths_s = np.diff(at_s)
    joules = sum(drawn_until_j(run, at_s) for run in runs)
    watts = np.diff(joules) / lengths_s if lengths_s.size else np.zeros(1)
    return float(watts.max())

"""Batch work beside a fleet: put into the hours of its run that cost least, within what the row leaves free."""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.fleet.hours.shift import Hours
from orrery.fleet.service.rate_curve import HOUR_S
from orrery.fleet.service.result import FRAME, FleetRun
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.by_hour import ByHour, drawn_until_j, pue_ratio
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
    if inputs.hours is None:
        raise ScenarioError("job: is put into hours by their price or carbon; write hours = day.csv beside it.")
    if top.steady or top.survive is not None:
        raise ScenarioError("job: stands beside a simulated run; leave out steady and survive.")


def jobs_of(inputs: FleetInputs, by_hour: ByHour | None) -> ShiftAnswer | InfeasibleAnswer | None:
    """The jobs of a fleet in the whole hours of its run; None where there are none."""
    top = inputs.top
    if not top.job or by_hour is None or inputs.hours is None:
        return None
    pue = pue_ratio(inputs)
    whole = by_hour.whole_hours
    if not whole.any():
        raise ScenarioError("job: the run has no whole hour of the clock; write days = 1, or start at a full hour.")
    hours = Hours(
        length_s=HOUR_S,
        base_w=by_hour.energy_j[whole] / pue / HOUR_S,
        usd_per_j=by_hour.usd_per_j[whole],
        carbon_g=by_hour.joule_carbon_g[whole],
    )
    question = ShiftQuestion(job=top.job, row_limit_w=top.row_limit_w, usd_per_tonne=top.usd_per_tonne, pue=pue)
    return placed(question, hours)


def peak_power_w(run: FleetRun) -> float:
    """The highest mean power of devices and hosts between two samples of a run."""
    at_s = np.unique(np.append(run.frames[:, FRAME.index("now_s")], run.end_s))
    at_s = at_s[at_s <= run.end_s]
    lengths_s = np.diff(at_s)
    watts = np.diff(drawn_until_j(run, at_s)) / lengths_s if lengths_s.size else np.zeros(1)
    return float(watts.max())

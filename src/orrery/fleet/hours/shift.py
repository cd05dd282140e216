"""Work that may wait, put into the hours that cost least: a linear program over jobs and hours.

min  sum_jh  x[j, h] length_h cost[h]        x: watts of job j in hour h
sum_h x[j, h] length_h = energy[j]           0 <= x[j, h] <= most[j] within its hours, else 0
sum_j x[j, h] <= limit - base[h]             the row's limit, less what the service draws
cost[h] = PUE (price[h] + carbon[h] x price of carbon)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.program import Program, solved

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hours:
    """Stretches of equal length: what the service draws, and what a joule costs and emits."""

    length_s: float
    base_w: Floats
    usd_per_j: Floats
    carbon_g: Floats  # of a joule


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work of so much energy, between two hours, at most at so many watts."""

    name: str
    energy_j: float
    first: int  # hour, from 0
    last: int  # hour behind its end
    limit_w: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schedule:
    """Watts of each job in each hour, and what all of it costs and emits at the meter."""

    job_w: Floats  # jobs x hours
    usd: float
    carbon_g: float


def shifted(hours: Hours, jobs: Sequence[Job], limit_w: float, pue_ratio: float, usd_per_g: float) -> Schedule | None:
    """Return the schedule of least cost, carbon priced; None where the work does not fit."""
    return _placed(hours, jobs, limit_w, pue_ratio, hours.usd_per_j + usd_per_g * hours.carbon_g)


def at_once(hours: Hours, jobs: Sequence[Job], limit_w: float, pue_ratio: float) -> Schedule | None:
    """Return the schedule that does all work as early as it can."""
    return _placed(hours, jobs, limit_w, pue_ratio, np.arange(1.0, hours.base_w.size + 1.0))


def _placed(hours: Hours, jobs: Sequence[Job], limit_w: float, pue_ratio: float, cost: Floats) -> Schedule | None:
    """The program, in units of the largest job's energy an hour, so that its numbers are near 1."""
    num_jobs, num_hours = len(jobs), hours.base_w.size
    scale = max(job.energy_j for job in jobs) / hours.length_s
    inside = np.zeros((num_jobs, num_hours))
    for j, job in enumerate(jobs):
        inside[j, job.first : job.last] = job.limit_w / scale
    done = np.kron(np.eye(num_jobs), np.ones(num_hours))
    room = np.kron(np.ones(num_jobs), np.eye(num_hours))
    energy = np.array([job.energy_j for job in jobs]) / hours.length_s / scale
    spread = float(np.abs(cost).max()) or 1.0
    found = solved(
        Program(
            cost=np.tile(cost / spread, num_jobs),
            matrix=np.vstack([done, room]).astype(np.float64),
            row_low=np.concatenate([energy, np.full(num_hours, -np.inf)]),
            row_high=np.concatenate([energy, np.maximum(limit_w - hours.base_w, 0.0) / scale]),
            most=inside.reshape(-1),
            is_whole=np.zeros(num_jobs * num_hours, dtype=np.bool_),
        )
    )
    if found is None:
        return None
    job_w: Floats = found.x.reshape(num_jobs, num_hours) * scale
    drawn_j = job_w.sum(axis=0) * hours.length_s * pue_ratio
    return Schedule(job_w=job_w, usd=float(drawn_j @ hours.usd_per_j), carbon_g=float(drawn_j @ hours.carbon_g))

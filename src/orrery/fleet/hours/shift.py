"""Work that may wait, put into the hours that cost least: a linear program over jobs and hours.

min  sum_jh  x[j, h] length_h cost[h]        x: watts of job j in hour h
sum_h x[j, h] length_h = energy[j]           0 <= x[j, h] <= most[j] within its hours, else 0
sum_j x[j, h] <= limit - base[h]             the row's limit, less what the service draws
cost[h] = PUE (price[h] + carbon[h] x price of carbon)

With several sites h runs over the hours of each, the limit is that of each site's row, and a job's most is of all sites
at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.program import Program, solved

Floats = NDArray[np.float64]

SITE_ORDER = 1e-3
"""Hours by which work at the next site counts as later, so that of equal hours the first site's is taken."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hours:
    """Stretches of equal length: what the service draws, and what a joule costs and emits; of several sites one after
    the other."""

    length_s: float
    base_w: Floats
    usd_per_j: Floats
    carbon_g: Floats  # of a joule
    num_sites: int = 1

    @property
    def num_hours(self) -> int:
        """Stretches of one site."""
        return self.base_w.size // self.num_sites


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

    job_w: Floats  # jobs x hours, site after site
    usd: float
    carbon_g: float


def shifted(hours: Hours, jobs: Sequence[Job], limit_w: float, pue_ratio: float, usd_per_g: float) -> Schedule | None:
    """Return the schedule of least cost, carbon priced; None where the work does not fit."""
    return _placed(hours, jobs, limit_w, pue_ratio, hours.usd_per_j + usd_per_g * hours.carbon_g)


def at_once(hours: Hours, jobs: Sequence[Job], limit_w: float, pue_ratio: float) -> Schedule | None:
    """Return the schedule that does all work as early as it can, at the first site that has room."""
    later = np.arange(hours.num_sites)[:, None] * SITE_ORDER
    cost = np.arange(1.0, hours.num_hours + 1.0) + later
    return _placed(hours, jobs, limit_w, pue_ratio, cost.reshape(-1))


def _placed(hours: Hours, jobs: Sequence[Job], limit_w: float, pue_ratio: float, cost: Floats) -> Schedule | None:
    """The program, in units of the largest job's energy an hour, so that its numbers are near 1."""
    num_jobs, num_slots, num_hours = len(jobs), hours.base_w.size, hours.num_hours
    scale = max(job.energy_j for job in jobs) / hours.length_s
    inside = np.zeros((num_jobs, hours.num_sites, num_hours))
    for j, job in enumerate(jobs):
        inside[j, :, job.first : job.last] = job.limit_w / scale
    done = np.kron(np.eye(num_jobs), np.ones(num_slots))
    room = np.kron(np.ones(num_jobs), np.eye(num_slots))
    at_all_sites, most = np.zeros((0, num_jobs * num_slots)), np.zeros(0)
    if hours.num_sites > 1:
        at_all_sites = np.kron(np.eye(num_jobs), np.kron(np.ones(hours.num_sites), np.eye(num_hours)))
        most = np.repeat([job.limit_w / scale for job in jobs], num_hours)
    energy = np.array([job.energy_j for job in jobs]) / hours.length_s / scale
    spread = float(np.abs(cost).max()) or 1.0
    found = solved(
        Program(
            cost=np.tile(cost / spread, num_jobs),
            matrix=np.vstack([done, room, at_all_sites]).astype(np.float64),
            row_low=np.concatenate([energy, np.full(num_slots + most.size, -np.inf)]),
            row_high=np.concatenate([energy, np.maximum(limit_w - hours.base_w, 0.0) / scale, most]),
            most=inside.reshape(-1),
            is_whole=np.zeros(num_jobs * num_slots, dtype=np.bool_),
        )
    )
    if found is None:
        return None
    job_w: Floats = found.x.reshape(num_jobs, num_slots) * scale
    drawn_j = job_w.sum(axis=0) * hours.length_s * pue_ratio
    return Schedule(job_w=job_w, usd=float(drawn_j @ hours.usd_per_j), carbon_g=float(drawn_j @ hours.carbon_g))

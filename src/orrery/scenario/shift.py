"""Batch work moved to cheap or clean hours, beside a service that draws its own power."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_text
from orrery.base.user_text import csv_lines
from orrery.execution.memory import Infeasible
from orrery.fleet.hours.shift import Hours, Job, Schedule, at_once, shifted
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fields_shift import SHIFT_BY_NAME
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.kinds import Number, Word

Floats = NDArray[np.float64]

S_PER_HOUR, J_PER_KWH, G_PER_TONNE = 3600.0, 3.6e6, 1e6
COLUMNS = ("usd_per_kwh", "carbon_g_per_kwh", "power_w")
MAX_HOURS = 24 * 366


def _texts(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class ShiftQuestion(Inputs, table=SHIFT_BY_NAME):
    """Hours, jobs, limits and the price of carbon."""

    hours: Word = None
    fleet: Word = None
    job: Annotated[tuple[str, ...], BeforeValidator(_texts)] = ()
    row_limit_w: Number = None
    pue: Number = None
    usd_per_tonne: Number = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftAnswer:
    """The same work at once and shifted, beside what the service itself costs and emits."""

    hours: Hours
    jobs: tuple[Job, ...]
    early: Schedule
    best: Schedule
    service_usd: float
    service_carbon_g: float
    peak_w: float  # of the row, shifted
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        return to_json(
            {
                "at_once": {"usd": self.early.usd, "carbon_g": self.early.carbon_g},
                "shifted": {"usd": self.best.usd, "carbon_g": self.best.carbon_g},
                "service": {"usd": self.service_usd, "carbon_g": self.service_carbon_g},
                "peak_w": self.peak_w,
                "jobs": [
                    {"name": job.name, "energy_j": job.energy_j, "power_w": self.best.job_w[j]}
                    for j, job in enumerate(self.jobs)
                ],
                "hours": self.hours,
                "settings": self.settings,
                "notes": self.notes,
            }
        )


@typed
def shift(**settings: Any) -> ShiftAnswer | InfeasibleAnswer:
    """Jobs in the hours that cost least (money, and carbon at its price), within the row's limit.

    Settings are those of `orrery shift`: hours, fleet, job, row_limit_w, pue, usd_per_tonne.
    """
    inputs = read_asked(ShiftQuestion, settings, SHIFT_BY_NAME)
    if inputs.hours is None or not inputs.job:
        raise ScenarioError('hours and job: write both, such as hours = "day.csv" and job = ["train=400"].')
    return placed(inputs, read_hours(Path(inputs.hours), inputs.fleet))


def placed(inputs: ShiftQuestion, hours: Hours) -> ShiftAnswer | InfeasibleAnswer:
    """The jobs of a question in some hours, as early as they can and where they cost least."""
    jobs = tuple(_job(text, hours.num_hours) for text in inputs.job)
    limit, pue = inputs.row_limit_w or inf, inputs.pue or 1.0
    best = shifted(hours, jobs, limit, pue, (inputs.usd_per_tonne or 0.0) / G_PER_TONNE)
    early = at_once(hours, jobs, limit, pue)
    if best is None or early is None:
        return InfeasibleAnswer(infeasible=_too_much(hours, jobs, limit), settings=inputs.written())
    service_j = hours.base_w * hours.length_s * pue
    over = int((hours.base_w > limit).sum())
    notes = [f"row_limit_w: the service alone is above it in {over} hours"] if over else []
    return ShiftAnswer(
        hours=hours,
        jobs=jobs,
        early=early,
        best=best,
        service_usd=float(service_j @ hours.usd_per_j),
        service_carbon_g=float(service_j @ hours.carbon_g),
        peak_w=float((hours.base_w + best.job_w.sum(axis=0)).max()),
        notes=tuple(notes),
        settings=inputs.written(),
    )


def read_hours(path: Path, fleet: str | None = None) -> Hours:
    """Return the hours of a file; what the service draws from a fleet's answer where one is given."""
    lines = csv_lines(read_user_text(path, "table of hours (CSV)"), path, most_columns=50)
    header = [name.strip() for name in next(lines, (1, list[str]()))[1]]
    if "usd_per_kwh" not in header and "carbon_g_per_kwh" not in header:
        raise ScenarioError(f"{path}: line 1: write the columns usd_per_kwh, carbon_g_per_kwh or both, and power_w.")
    rows: list[tuple[float, ...]] = []
    for number, cells in lines:
        row = dict(zip(header, cells, strict=False))
        rows.append(tuple(_number(f"{path}: line {number}", row, name) for name in COLUMNS))
    if not 1 <= len(rows) <= MAX_HOURS:
        raise ScenarioError(f"{path}: {len(rows)} hours; write 1 to {MAX_HOURS:,}.")
    table = np.array(rows, dtype=np.float64)
    base = table[:, 2] if fleet is None else _drawn(Path(fleet), len(rows))
    return Hours(length_s=S_PER_HOUR, base_w=base, usd_per_j=table[:, 0] / J_PER_KWH, carbon_g=table[:, 1] / J_PER_KWH)


def _number(place: str, row: Mapping[str, str], name: str) -> float:
    text = row.get(name, "0") or "0"
    try:
        found = float(text)
    except ValueError:
        found = inf
    if not -1e12 < found < 1e12 or (found < 0 and name != "usd_per_kwh"):
        raise ScenarioError(f"{place}: {name}: got {text[:40]!r}; write a number.")
    return found


def _drawn(path: Path, count: int) -> Floats:
    """Mean watts of each hour of a fleet's answer; hours beyond its end repeat it from its beginning."""
    try:
        answer = cast("dict[str, Any]", json.loads(read_user_text(path, "answer of orrery fleet (JSON)")))
        series = answer["series"]
        start, power = (np.array(series[name], dtype=np.float64) for name in ("start_s", "power_w"))
    except (ValueError, KeyError, TypeError):
        raise ScenarioError(
            f"{path}: is no answer of orrery fleet; write one with: orrery fleet … --json > FILE."
        ) from None
    num = max(1, int(np.ceil((start[-1] + (start[1] - start[0] if start.size > 1 else 0.0)) / S_PER_HOUR - 1e-9)))
    of = np.minimum((start / S_PER_HOUR).astype(np.int64), num - 1)
    means = np.bincount(of, weights=power, minlength=num) / np.maximum(np.bincount(of, minlength=num), 1)
    return np.resize(means, count)


def _job(text: str, count: int) -> Job:
    """``train=400,from=0,until=24,most=50``: kWh, hours, kW."""
    message = f"job: got {text!r}; write NAME=KWH, and from=H, until=H, most=KW where they matter"
    words = [word.partition("=") for word in text.replace(" ", "").split(",")]
    try:
        name, values = words[0][0], {key: float(value) for key, _, value in words[1:]}
        energy = float(words[0][2])
    except ValueError:
        raise ScenarioError(f"{message}.") from None
    first, last = values.get("from", 0.0), values.get("until", float(count))
    most = values.get("most", inf)
    is_right = name and 0 < energy < 1e12 and values.keys() <= {"from", "until", "most"} and most > 0
    if not is_right or not 0 <= first < last <= count or first % 1 or last % 1:
        raise ScenarioError(f"{message}; the table has hours 0 to {count}.")
    joules = energy * J_PER_KWH
    return Job(
        name=name,
        energy_j=joules,
        first=int(first),
        last=int(last),
        limit_w=min(most * 1e3, joules / S_PER_HOUR),
    )


def _too_much(hours: Hours, jobs: tuple[Job, ...], limit: float) -> Infeasible:
    """The jobs' need, against what each could have alone and what the row spares in the hours of any."""
    room = (np.maximum(limit - hours.base_w, 0.0) * hours.length_s).reshape(hours.num_sites, -1).sum(axis=0)
    need = sum(job.energy_j for job in jobs)
    has = [min(j.energy_j, room[j.first : j.last].sum(), j.limit_w * (j.last - j.first) * hours.length_s) for j in jobs]
    of_any = sorted({hour for j in jobs for hour in range(j.first, j.last)})
    return Infeasible(
        what="energy of the jobs within their hours and limits",
        need=need,
        have=float(min(sum(has), room[of_any].sum())),
        unit="j",
        smallest_change="Allow more hours, more kilowatts for a job, or a higher limit of the row.",
    )

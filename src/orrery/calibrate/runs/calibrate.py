"""From logs to a corrected engine or framework: read, fit, check by leaving runs out, write where that helps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.calibrate.runs import file, reference_predictions
from orrery.calibrate.runs.answer import OPEN, ConstantUpdate, Predicted, RunsAnswer
from orrery.calibrate.runs.fit import Fitted, Predicts, errors_of, fit, keep, known_share
from orrery.calibrate.runs.left_out import LeftOut, leave_out
from orrery.calibrate.runs.problem import Floats, Runs
from orrery.calibrate.runs.read import NOTE, RUN, read_runs
from orrery.calibrate.runs.repeated_runs import Contradiction, contradictions, groups_of
from orrery.calibrate.runs.serving import ServingRuns
from orrery.calibrate.runs.spread import spreads
from orrery.calibrate.runs.training import TrainingRuns
from orrery.catalog.releases import UNVERSIONED
from orrery.evidence.tables import Table

Progress = Callable[[int, int], None]

FEWEST = 3
"""Runs of different conditions that a correction needs: one is left out, and two must still agree."""

MOST = 60
"""Runs that enter a fit, taken evenly: more tell little and take long."""

PREDICTIONS_PER_RUN = 30
"""About so many times is each run predicted: what a progress bar is told beforehand."""

SHOWN = 5
"""Largest number of contradictions, and of reasons for declined rows, that are listed."""


@dataclass(slots=True)
class _Told:
    """Counts predictions for whoever watches."""

    total: int
    on_progress: Progress | None
    done: int = 0

    def __call__(self) -> None:
        self.done += 1
        if self.on_progress:
            self.on_progress(min(self.done, self.total), self.total)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Settled:
    """One fit and its check; ``told`` also names what was not identified."""

    updates: tuple[ConstantUpdate, ...]
    left_out: LeftOut
    share: float


@typed
def calibrate_runs(
    paths: Sequence[Path | str],
    *,
    name: str,
    replace: bool = False,
    on_progress: Progress | None = None,
    **user_settings: str,
) -> RunsAnswer:
    """Correct the few constants that measured runs identify, and write them to ``NAME.toml`` where that helps.

    ``paths`` are results of the tools that ``calibrate.runs.readers`` knows, or measured tables, all of one engine (or
    framework) on one device; ``said`` is what they do not say (``device="h100-sxm"``, ``tp="2"``, …). The file is
    accepted as ``engine`` (or ``framework``) by every other question. Nothing is written where the correction does not
    help runs that were left out of it.
    """
    path = file.path_of(name, replace=replace)
    table = read_runs(paths, user_settings)
    runs = _runs(table)
    tell = _Told(total=PREDICTIONS_PER_RUN * len(runs.table), on_progress=on_progress)
    groups = groups_of(runs.table)
    if len(set(groups)) < FEWEST:
        raise ScenarioError(
            f"{len(set(groups))} runs of different conditions can be predicted; a correction needs at least {FEWEST}, "
            "so that each can be checked by the others. " + " ".join(_declined(runs.declined))
        )
    against, weights = contradictions(runs.table, runs.cells, groups)
    settled = _settle(runs, groups, weights, tell, runs.references())
    updates, notes = list(settled.updates), _notes(table, runs, against, settled)
    is_better = settled.left_out.is_better
    day = max((d for d in runs.table.columns.get("measured_date", ()) if d), default=date.today().isoformat())
    intervals = spreads(runs, settled.left_out.after)
    is_written = is_better and any(t.left <= OPEN for t in updates)
    if is_written:
        file.write(path, runs.subject, updates, intervals, len(runs.table), day, notes)
    else:
        notes.append(
            "Nothing was written: runs that were left out are not predicted better than by the shipped constants, by "
            "more than chance."
        )
    if on_progress:
        on_progress(tell.total, tell.total)
    return RunsAnswer(
        name=path.stem,
        written=path if is_written else None,
        subject=runs.subject,
        num_runs=len(runs.table),
        num_measurements=len(runs.cells),
        constants=tuple(updates),
        scores=settled.left_out.scores(runs.cells),
        spreads=intervals,
        share_frac=settled.share,
        predicted=_predicted(runs, settled.left_out),
        notes=tuple(notes),
    )


def _runs(table: Table) -> Runs:
    """The rows as runs of the one kind that they are."""
    kinds = sorted(set(table.columns["kind"]))
    if kinds not in (["serving"], ["training"]):
        raise ScenarioError(
            f"kind: the runs are {' and '.join(kinds)}; runs of kind serving correct an engine and runs of kind "
            "training a framework, each alone."
        )
    step = -(-len(table) // MOST)
    thin = table.take(list(range(0, len(table), step)))
    return ServingRuns(thin) if kinds == ["serving"] else TrainingRuns(thin)


def _settle(
    problem: Predicts,
    groups: Sequence[int],
    weights: Floats,
    tell: Callable[[], None],
    references: Sequence[reference_predictions.Reference],
) -> _Settled:
    """Fit, keep what the runs identify, go as far as other predictions allow, and check on runs left out."""
    before = errors_of(problem, problem.start, tell)
    whole = fit(problem, problem.constants, weights, tell)
    left = known_share(whole)
    retained = keep(whole, left <= OPEN)
    share = 1.0
    if retained.names and references:
        own = reference_predictions.furthest_move(before, whole.error)
        share = reference_predictions.part_of_the_way(
            references, own, lambda s: retained.values(problem.start, retained.towards(s))
        )
    left_out = leave_out(problem, retained, before, groups, share, tell)
    return _Settled(updates=_constant_updates(problem, whole, left, retained, share), left_out=left_out, share=share)


def _constant_updates(
    problem: Predicts, whole: Fitted, left: Floats, retained: Fitted, share: float
) -> tuple[ConstantUpdate, ...]:
    values = retained.values(problem.start, retained.towards(share))
    sd = np.sqrt(np.diag(whole.posterior.covariance))
    return tuple(
        ConstantUpdate(
            name=c.name,
            before=problem.start[c.name],
            after=values[c.name],
            sd_log=float(s),
            left=float(x),
            needs=c.needs,
        )
        for c, s, x in zip(problem.constants, sd, left, strict=True)
    )


def _predicted(runs: Runs, left_out: LeftOut) -> tuple[Predicted, ...]:
    names = runs.table.columns[RUN]
    return tuple(
        Predicted(
            run=names[c.run],
            metric=c.metric,
            measured=c.measured,
            before=float(c.measured * np.exp(b)),
            after=float(c.measured * np.exp(a)),
        )
        for c, b, a in zip(runs.cells, left_out.before, left_out.after, strict=True)
    )


def _notes(table: Table, runs: Runs, against: Sequence[Contradiction], settled: _Settled) -> list[str]:
    notes = [
        f"{run}: {note}" for run, note in zip(table.columns[RUN], table.columns.get(NOTE, ()), strict=False) if note
    ]
    if len(table) > MOST:
        notes.append(f"{len(table)} runs; {len(runs.table)} of them, taken evenly, entered the fit")
    notes += _declined(runs.declined)
    notes += [f"{c}; they count less, and the intervals are wider" for c in against[:SHOWN]]
    if len(against) > SHOWN:
        notes.append(f"{len(against) - SHOWN} more such contradictions")
    if settled.share < 1.0:
        notes.append(
            f"The constants went {percent(settled.share)} of the way that the runs ask for: further, predictions of "
            "other models or modes would leave their intervals, and by more than any of these runs needed."
        )
    if runs.subject.kind == "engine" and runs.subject.version in ("", UNVERSIONED):
        notes.append("The runs do not say the engine's version; --engine-version 0.11.0 ties the correction to one.")
    if len(runs.subject.models) == 1:
        notes.append(f"All runs are of {runs.subject.models[0]}; how well other models are met is not measured here.")
    return notes


def _declined(declined: Mapping[int, str]) -> list[str]:
    """Reasons, the most frequent ones first."""
    counts: dict[str, int] = {}
    for reason in declined.values():
        counts[reason] = counts.get(reason, 0) + 1
    most = sorted(counts.items(), key=lambda x: -x[1])[:SHOWN]
    return [f"{n} runs were left out: {reason}" for reason, n in most]

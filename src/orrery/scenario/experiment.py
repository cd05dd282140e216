"""Experiments for any window: which there are, and the answer of one, over one seed or several."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import fmean
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.experiment import Experiment, Row, experiments_in
from orrery.base.user_file import user_path
from orrery.catalog.devices import get_device
from orrery.fleet import studies as of_fleets
from orrery.kernels import studies as of_kernels
from orrery.numerics.experiments import registry as numerics
from orrery.predictors import registry as predictors
from orrery.scenario.answer import to_json
from orrery.scenario.schema import read_scenario
from orrery.scenario.show import Table
from orrery.scenario.tensor_file import tensors_in
from orrery.serving import studies as of_servers
from orrery.training import studies as of_training

MAX_SEEDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentAnswer:
    """One experiment as it was run; the same seeds and steps give the same rows again.

    Over several seeds a row has the mean of each outcome, and its least and largest as ``NAME_low`` and ``NAME_high``.
    """

    name: str
    question: str
    seed: int
    num_steps: int
    rows: tuple[Row, ...]
    num_seeds: int = 1
    sizes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    curve: tuple[str, str] | None = None
    keys: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """``{"experiment", "question", "seed", "num_steps", "rows"}``, and the seeds and sizes."""
        return {
            "experiment": self.name,
            "question": self.question,
            "seed": self.seed,
            "num_seeds": self.num_seeds,
            "num_steps": self.num_steps,
            "sizes": to_json(self.sizes),
            "rows": to_json(self.rows),
        }

    def table(self) -> Table:
        """The rows, for people."""
        seeds = f"Seed {self.seed}" if self.num_seeds == 1 else f"Seeds {self.seed} to {self.seed + self.num_seeds - 1}"
        sizes = ", ".join(f"{name} {value}" for name, value in self.sizes.items())
        note = f"{seeds}, {self.num_steps} steps a run{f'; {sizes}' if sizes else ''}."
        return Table(kind="experiments", title=f"{self.name}: {self.question}", rows=self.rows, notes=(note,))

    def svg(self) -> str:
        """Its curves with a band over the seeds; an error where it has none."""
        from orrery.drawing.axis import Axis
        from orrery.drawing.lines import Series, lines

        if self.curve is None:
            raise ScenarioError(f"out: experiment {self.name} has a table, no curves; end the file in .json.")
        x, y = self.curve
        series: dict[str, list[Row]] = {}
        names = [key for key in self.keys if key not in self.curve and len({row[key] for row in self.rows}) > 1]
        for row in self.rows:
            series.setdefault(", ".join(f"{row[key]}" for key in names) or y, []).append(row)
        has_band = self.num_seeds > 1 and f"{y}_low" in self.rows[0]
        curves = [
            Series(
                name,
                [float(row[x]) for row in rows],
                [float(row[y]) for row in rows],
                [float(row[f"{y}_low"]) for row in rows] if has_band else [],
                [float(row[f"{y}_high"]) for row in rows] if has_band else [],
            )
            for name, rows in series.items()
        ]
        says = f"Bands hold all of {self.num_seeds} seeds." if has_band else f"Seed {self.seed}."
        return lines(
            curves,
            Axis(x.replace("_", " ")),
            Axis(y.replace("_", " ")),
            title=f"{self.name}: {self.question}",
            says=says,
        )


def known_experiments() -> dict[str, Experiment]:
    """Every experiment of every floor, by name."""
    packages = (of_fleets, of_kernels, of_servers, of_training)
    here = {name: found for package in packages for name, found in experiments_in(package).items()}
    return dict(sorted((numerics.known_experiments() | predictors.known_experiments() | here).items()))


def list_experiments() -> Table:
    """Every experiment, a row each."""
    rows = [
        {
            "name": e.name,
            "question": e.question,
            "num_steps": e.num_steps,
            "set": ", ".join(f.name for f in fields(e.sizes)) if e.sizes else "",
            "reads": ", ".join(e.reads),
            "claims": ", ".join(e.claims),
        }
        for e in known_experiments().values()
    ]
    return Table(
        kind="experiments",
        title="Experiments",
        rows=tuple(rows),
        notes=("`orrery experiment NAME` runs one; most take seconds to two minutes.",),
    )


def run_experiment(
    name: str,
    *,
    seed: int = 0,
    seeds: int = 1,
    steps: int = 0,
    sizes: Sequence[str] = (),
    data: str | None = None,
    device: str | None = None,
    deployment: Mapping[str, Any] | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> ExperimentAnswer:
    """The experiment called ``name``; ``steps`` of each run, 0 for its own choice.

    ``sizes`` are written NAME=VALUE; ``data`` is a file of arrays (.npz) or a table (CSV), ``device`` a name and
    ``deployment`` settings of one, for experiments that read them. ``seeds`` is how many runs from ``seed`` on.
    """
    if (found := (known := known_experiments()).get(name)) is None:
        raise UnknownName("experiment", name, known)
    if not 1 <= seeds <= MAX_SEEDS:
        raise ScenarioError(f"seeds: got {seeds}; write 1 to {MAX_SEEDS}.")
    written = read_sizes(sizes)
    arrays = {} if data is None else _data(found, data)
    on = None if device is None else get_device(device)
    served = read_scenario(deployment).written() if deployment else None
    runs = [
        found(
            seed=seed + i,
            steps=steps,
            sizes=written,
            data=arrays,
            device=on,
            deployment=served,
            progress=lambda done, total, i=i: on_progress(i * total + done, seeds * total),
        )
        for i in range(seeds)
    ]
    return ExperimentAnswer(
        name=name,
        question=found.question,
        seed=seed,
        num_seeds=seeds,
        num_steps=steps or found.num_steps,
        rows=runs[0] if seeds == 1 else _over_seeds(runs, found.keys),
        sizes=written,
        curve=found.curve,
        keys=found.keys,
    )


def _data(found: Experiment, data: str) -> dict[str, Any]:
    """The user's arrays, or where the experiment reads a table, its path."""
    if "table" in found.reads:
        return {"table": user_path(data)}
    return {tensor.name: tensor.read() for tensor in tensors_in(user_path(data))}


def read_sizes(texts: Iterable[str]) -> dict[str, str]:
    """Given values of the sizes, by name."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals or not value:
            raise ScenarioError(f"set: {text!r} is no size; write NAME=VALUE, such as hidden=64.")
        found[name.strip().replace("-", "_")] = value.strip()
    return found


def _over_seeds(runs: Sequence[tuple[Row, ...]], keys: tuple[str, ...]) -> tuple[Row, ...]:
    """Rows of several runs as one: means, and the least and largest of each outcome."""
    columns = keys or tuple(name for name, value in runs[0][0].items() if isinstance(value, str))
    grouped: dict[tuple[Any, ...], list[Row]] = {}
    for run in runs:
        for place, row in enumerate(run):
            key = tuple(row[name] for name in columns) if keys else (place,)
            grouped.setdefault(key, []).append(row)
    return tuple(_mean_row(rows, columns) for rows in grouped.values())


def _mean_row(rows: Sequence[Row], keys: tuple[str, ...]) -> Row:
    found: dict[str, Any] = {}
    for name, first in rows[0].items():
        if name in keys or isinstance(first, str):
            found[name] = first
            continue
        values = [float(value) for row in rows if np.isfinite(value := float(row[name]))]
        found[name] = fmean(values) if values else float("nan")
        found[f"{name}_low"], found[f"{name}_high"] = (
            (min(values), max(values)) if values else (float("nan"), float("nan"))
        )
    return found

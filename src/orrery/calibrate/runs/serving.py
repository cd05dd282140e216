"""Serving runs: which constants of an engine's host they may correct, and what is predicted with others."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt

from orrery.base.errors import OrreryError, ScenarioError
from orrery.calibrate.runs.problem import Cell, Constant, Constants, Reference, Subject
from orrery.calibrate.runs.read import TOOL
from orrery.calibrate.runs.reference_predictions import serving_references
from orrery.calibrate.runs.user_settings import one_of
from orrery.catalog.engines import ASSUMED_HOST, era_of
from orrery.evidence.metrics import METRICS, base_metric
from orrery.evidence.row import Row
from orrery.evidence.serving_pools import read_service
from orrery.evidence.serving_rows import MEDIAN, metric_of, predict
from orrery.evidence.serving_simulated import Ran
from orrery.evidence.tables import Table
from orrery.execution.memory import Infeasible
from orrery.serving.simulation.service import Service
from orrery.serving.workload import Workload

CONSTANTS = (
    Constant(
        name="step_s",
        stiffness=0.7,
        low=1e-5,
        high=0.2,
        needs="a small model at concurrency 1 to 8, whose steps are so short that the host shows",
    ),
    Constant(
        name="per_sequence_s",
        stiffness=0.8,
        low=1e-7,
        high=5e-3,
        needs="a small model at concurrency 128 and more, where each sequence's share of the host adds up",
    ),
    Constant(
        name="per_layer_s", stiffness=0.7, low=1e-7, high=1e-3, needs="two models of different depth at concurrency 1"
    ),
    Constant(
        name="request_s",
        stiffness=0.7,
        low=1e-4,
        high=2.0,
        needs="first tokens of short prompts (256 tokens) on an idle server: concurrency 1",
    ),
    Constant(
        name="memory_ratio",
        stiffness=0.3,
        low=0.1,
        high=50.0,
        needs="long answers of a large model at concurrency 1: steps that only read weights",
    ),
    Constant(
        name="compute_ratio",
        stiffness=0.3,
        low=0.1,
        high=50.0,
        needs="first tokens of long prompts (8,000 tokens and more) at concurrency 1",
    ),
)
"""Stiffness of the host's constants is the standard deviation of their logarithms over the shipped entries (0.43 to
0.82); the ratios spread as far (0.6), but over devices whose kernels nobody measured, so they are held tighter."""

NOISE, FIRST_TOKEN_NOISE = 0.05, 0.15
"""Relative, one sigma, of a run repeated and of what the model leaves out; queues decide much of a first token."""

TAIL = 2.0
"""Percentiles away from the middle are so much noisier."""

FAMILIES = {
    "output_tokens_per_s": "rate",
    "total_tokens_per_s": "rate",
    "requests_per_s": "rate",
    "itl_s": "gap",
    "tpot_s": "gap",
    "decode_tokens_per_s": "gap",
    "latency_s": "whole",
    "ttft_s": "first",
}
"""Metrics that say the same thing twice; those of a family share the weight of one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """One run that was understood."""

    service: Service
    workload: Workload
    metrics: tuple[str, ...]

    def with_constants(self, constants: Constants) -> Service:
        """The service with other constants of its engine."""
        pools = tuple(
            replace(p, deployment=replace(p.deployment, engine=replace(p.deployment.engine, **constants)))
            for p in self.service.pools
        )
        return replace(self.service, pools=pools)


class ServingRuns:
    """Rows of a table as services and workloads."""

    def __init__(self, table: Table) -> None:
        self.declined: dict[int, str] = {}
        rows, runs = list[int](), list[Served]()
        for number in range(len(table)):
            try:
                runs.append(_served(Row({c: v[number] for c, v in table.columns.items()})))
                rows.append(number)
            except OrreryError as error:
                self.declined[number] = str(error)
        if not runs:
            raise _none(self.declined)
        self.table, self.runs, self.constants = table.take(rows), runs, CONSTANTS
        self.subject = _subject(self.table, runs)
        self.start: Constants = {c: getattr(runs[0].service.pools[-1].deployment.engine, c) for c in ASSUMED_HOST}
        self._known: dict[tuple[int, tuple[float, ...]], Mapping[str, float]] = {}
        self.cells = tuple(cell for run in range(len(runs)) for cell in self._cells(run))

    def _cells(self, run: int) -> Iterator[Cell]:
        served, predicted = self.runs[run], self.predict(run, self.start)
        metrics = [m for m in served.metrics if isfinite(predicted[m]) and predicted[m] > 0]
        counts = Counter(FAMILIES.get(base_metric(m), m) for m in metrics)
        for metric in metrics:
            base = base_metric(metric)
            noise = FIRST_TOKEN_NOISE if base == "ttft_s" else NOISE
            noise *= sqrt(counts[FAMILIES.get(base, metric)]) * (TAIL if metric not in (base, base + MEDIAN) else 1.0)
            measured = float(self.table.columns[metric][run])
            yield Cell(run=run, mode=served.workload.mode, metric=metric, measured=measured, noise=noise)

    def predict(self, run: int, constants: Constants) -> Mapping[str, float]:
        """Every measured metric of one run; none where it is predicted not to fit, whatever the constants."""
        key = (run, tuple(constants.values()))
        if key not in self._known:
            self._known[key] = _predicted(self.runs[run], constants)
        return self._known[key]

    def references(self) -> Sequence[Reference]:
        """Other models in every mode."""
        deployment = self.runs[0].service.pools[-1].deployment
        return tuple(serving_references(deployment.engine, deployment.cluster.device))

    def spread_key(self, cell: Cell) -> str:
        """By mode and metric."""
        base = base_metric(cell.metric)
        return f"{cell.mode}.{'tpot_s' if base == 'itl_s' else base}"


def _predicted(served: Served, constants: Constants) -> Mapping[str, float]:
    service = served.with_constants(constants)
    found = predict(service, served.workload)
    if isinstance(found, Infeasible):
        return dict.fromkeys(served.metrics, float("nan"))
    if isinstance(found, Ran):
        return {m: found.value(m) for m in served.metrics}
    deployment = service.pools[0].deployment
    return {m: metric_of(found, base_metric(m), deployment, served.workload)[0] for m in served.metrics}


def _served(row: Row) -> Served:
    service, workload = read_service(row)
    metrics = tuple(c for c in row.cells if base_metric(c) in FAMILIES and row.word(c) and row.number(c) > 0)
    if workload.mode == "static":
        metrics = tuple(m for m in metrics if m in METRICS["serving"] or m.endswith(MEDIAN))
    if not metrics:
        raise ScenarioError("states none of the metrics that tell constants: " + ", ".join(FAMILIES))
    return Served(service=service, workload=workload, metrics=metrics)


def _none(declined: Mapping[int, str]) -> ScenarioError:
    reasons = Counter(declined.values()).most_common(3)
    return ScenarioError("No run can be predicted: " + "; ".join(f"{n} x {reason}" for reason, n in reasons))


def _subject(table: Table, runs: Sequence[Served]) -> Subject:
    """The one engine, era and device of all runs."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    versions: dict[str, None] = {}
    for run in runs:
        for pool in run.service.pools:
            engine, device = pool.deployment.engine, pool.deployment.cluster.device
            found["device"][device.name] += 1
            found["engine"][engine.name] += 1
            found["engine_version"][era_of(engine.name, engine.version)] += 1
            versions[engine.version] = None
    for column, names in found.items():
        if len(names) > 1:
            listed = ", ".join(f"{name or 'blank'} ({n} runs)" for name, n in names.items())
            raise ScenarioError(
                f"{column}: the runs are of {len(names)}: {listed}. A correction is of one; calibrate each alone."
            )
    models = tuple(dict.fromkeys(r.service.pools[-1].deployment.model.name for r in runs))
    tools = one_of([{TOOL: t} for t in table.columns.get(TOOL, ())], TOOL)
    return Subject(
        kind="engine",
        base=next(iter(found["engine"])),
        version=list(versions)[-1],
        precision="",
        device=next(iter(found["device"])),
        models=models,
        tools=tools,
    )

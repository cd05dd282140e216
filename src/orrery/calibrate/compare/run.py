"""Settings of a measured run as the prediction takes them: a cause changes one of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

from orrery.base.cost import Interval, Spread
from orrery.evidence.metrics import base_metric
from orrery.evidence.serving_rows import metric_of as static_metric
from orrery.evidence.serving_rows import predict as predict_serving
from orrery.evidence.serving_simulated import Ran
from orrery.evidence.training_rows import Read
from orrery.evidence.training_rows import metric_of as training_metric
from orrery.execution.memory import Infeasible
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.serving.simulation.service import Service
from orrery.serving.workload import Workload
from orrery.training.columns import columns_of
from orrery.training.error_range import spread_of
from orrery.training.step import step_of

Z_80 = 1.2816
"""Standard deviations from the middle of a normal law to the ends of its central 80 %."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServingRun:
    """A service and its traffic. ``asked`` is the traffic that users asked for, whatever is computed beyond it."""

    name: str  # number and traffic
    source: str  # where it stands
    service: Service
    workload: Workload
    requested: Workload


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingRun:
    """A job and its layout; ``row`` is what the table said, by which rates are counted."""

    name: str  # number and layout
    source: str  # where it stands
    row: Read
    job: TrainingJob
    layout: TrainingLayout


Run = ServingRun | TrainingRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A predicted metric and the deviation of log(measured / predicted) that its interval states; None without one."""

    value: float  # in the metric's unit
    deviation_ratio: float | None


def predict(run: Run, metrics: Iterable[str]) -> dict[str, Value] | Infeasible:
    """Predictions of ``orrery check`` for these metrics of a run; metrics that it does not predict are left out."""
    if isinstance(run, TrainingRun):
        return _training(run, metrics)
    found = predict_serving(run.service, run.workload)
    if isinstance(found, Infeasible):
        return found
    out: dict[str, Value] = {}
    for metric in metrics:
        base = base_metric(metric)
        if isinstance(found, Ran):
            value = found.value(metric)
            interval = found.interval(metric, value)
        elif metric == base or metric.endswith("_p50"):
            value, interval = static_metric(found, base, run.service.pools[0].deployment, run.workload)
        else:
            continue
        out[metric] = Value(value=value * _counted(run, base), deviation_ratio=_deviation(interval))
    return out


def _counted(run: ServingRun, metric: str) -> float:
    """Share of the computed tokens that was asked for, where a metric counts prompt tokens; else 1."""
    if metric != "total_tokens_per_s" or run.requested is run.workload:
        return 1.0
    requested = run.requested.input_tokens + run.requested.output_tokens
    return requested / (run.workload.input_tokens + run.workload.output_tokens)


def _training(run: TrainingRun, metrics: Iterable[str]) -> dict[str, Value]:
    """Metrics of a training step, counted as the row counts (by its own device's peak, by its own job's tokens)."""
    steps = step_of(run.job, columns_of([run.layout]))
    out: dict[str, Value] = {}
    for metric in metrics:
        spread = spread_of(run.row.job, "peak_memory_bytes" if metric.startswith("peak") else "step_time_s")
        out[metric] = Value(value=training_metric(steps, 0, metric, run.row), deviation_ratio=_ratio_deviation(spread))
    return out


def _deviation(interval: Interval | None) -> float | None:
    if interval is None or not 0.0 < interval.low_80 < interval.high_80 < float("inf"):
        return None
    return log(interval.high_80 / interval.low_80) / (2.0 * Z_80)


def _ratio_deviation(spread: Spread | None) -> float | None:
    return None if spread is None else log(spread.high_80_ratio / spread.low_80_ratio) / (2.0 * Z_80)

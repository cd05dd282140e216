"""Serving rows to predictions: each distinct deployment and workload is answered once.

A static batch has a closed form; runs with traffic are simulated.
"""

from collections.abc import Callable
from dataclasses import replace

from orrery.base.cost import Interval
from orrery.base.errors import OrreryError, UnknownName
from orrery.evidence.answers import Answers, Rows
from orrery.evidence.metrics import FITS, METRICS, OUTCOME_COLUMNS, base_metric
from orrery.evidence.row import Row
from orrery.evidence.serving_pools import read_service
from orrery.evidence.serving_simulated import Ran, run
from orrery.evidence.tables import Table
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.execution.shard import shard
from orrery.numerics.registry import get_format
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.intervals import ENDS, OTHER_END
from orrery.serving.simulation.service import Service
from orrery.serving.uncached import without_cache
from orrery.serving.workload import Workload

Progress = Callable[[int, int], None]
Key = tuple[Workload, bool, tuple[tuple[Deployment, int], ...]]
"""Key of rows that are the same run: traffic, whether pools share a node, and the pools."""

DOES_NOT_FIT = "predicted not to fit in memory"
REPORT_EVERY = 200
ACCEPTED = tuple(c for c in METRICS["serving"])
MEDIAN = "_p50"
"""Medians of a static batch are compared with the predicted mean; its other percentiles are not predicted."""


def answer(table: Table, rows: Rows, answers: Answers, on_progress: Progress | None = None) -> None:
    """Predict every metric that the given serving rows state."""
    metrics = [c for c in table.columns if base_metric(c) in ACCEPTED]
    has_outcome = any(c in table.columns for c in OUTCOME_COLUMNS)
    known: dict[Key, Estimate | Ran | Infeasible] = {}
    for done, number in enumerate(map(int, rows), start=1):
        row = Row({c: v[number] for c, v in table.columns.items()})
        try:
            service, workload = read_service(row)
            key = (workload, service.is_same_node, tuple((p.deployment, p.replicas) for p in service.pools))
            if (found := known.get(key)) is None:
                found = known.setdefault(key, predict(service, workload))
        except UnknownName as error:
            answers.decline([number], f"unknown {error.kind} {error.name}")
        except OrreryError as error:
            answers.decline([number], str(error))
        else:
            _note(answers, number, row, service, workload, found, metrics, has_outcome=has_outcome)
        if on_progress and (done % REPORT_EVERY == 0 or done == len(rows)):
            on_progress(done, len(rows))


def predict(service: Service, workload: Workload) -> Estimate | Ran | Infeasible:
    """One run: in closed form where it is a single batch, else step by step."""
    if not workload.keeps_cache:
        return without_cache(service.pools[0].deployment, workload)
    if workload.mode == "static":
        return estimate(service.pools[0].deployment, workload)
    return run(service, workload)


def _note(
    answers: Answers,
    number: int,
    row: Row,
    service: Service,
    workload: Workload,
    found: Estimate | Ran | Infeasible,
    metrics: list[str],
    *,
    has_outcome: bool,
) -> None:
    """Write one row's answer down."""
    if has_outcome:
        answers.predict_one(FITS, number, float(not isinstance(found, Infeasible)))
    if isinstance(found, Infeasible):
        if not has_outcome:
            answers.decline([number], DOES_NOT_FIT)
        return
    answers.assumed.update(row.assumed)
    for column in metrics:
        if row.word(column) and (isinstance(found, Ran) or column in ACCEPTED or column.endswith(MEDIAN)):
            value, interval = _value(found, column, service, workload)
            answers.predict_one(column, number, value, interval)
    answers.beats_bound[number] = beats_bound(row, service.pools[0].deployment, workload)


def _value(found: Estimate | Ran, column: str, service: Service, workload: Workload) -> tuple[float, Interval | None]:
    if isinstance(found, Estimate):
        return metric_of(found, base_metric(column), service.pools[0].deployment, workload)
    value = found.value(column)
    return value, found.interval(column, value)


def metric_of(
    found: Estimate, metric: str, deployment: Deployment, workload: Workload
) -> tuple[float, Interval | None]:
    """The estimate's value of a metric of the schema, and its interval where there is one."""
    if metric == "itl_s":
        return found.tpot_s, found.intervals.get("tpot_s")
    if metric == "decode_tokens_per_s":
        step_s = found.decode_step_s if workload.mode == "static" else found.tpot_s  # prompts are not in such a rate
        return found.concurrency / step_s, _of_rate(found, step_s)
    if metric == "kv_cache_tokens":
        return found.memory.kv_capacity_tokens * deployment.layout.dp, None
    return getattr(found, metric), found.intervals.get(metric)


def _of_rate(found: Estimate, step_s: float) -> Interval | None:
    """The interval of the rate at which a batch decodes, from that of its steps: the ends change places."""
    if (each := found.intervals.get("tpot_s")) is None:
        return None
    steps = each.scaled(step_s / found.tpot_s)
    return Interval(**{end: found.concurrency / getattr(steps, OTHER_END[end]) for end in ENDS}, because=steps.because)


def beats_bound(row: Row, deployment: Deployment, workload: Workload) -> bool:
    """Whether a static batch was faster than the datasheet allows: the whole of it, or one token of its answers."""
    if workload.mode != "static":
        return False
    token_s = static_bound_s(deployment, replace(workload, input_tokens=0.0, output_tokens=1.0))
    return (
        0.0 < row.number("latency_s") < static_bound_s(deployment, workload)
        or 0.0 < row.number("tpot_s") < token_s
        or row.number("decode_tokens_per_s") * token_s > workload.batch_size
    )


def static_bound_s(deployment: Deployment, workload: Workload) -> float:
    """The least time of a static batch that the datasheet allows.

    Each answer token reads all active weights once, at the full bandwidth of all devices; and all tokens need their
    multiply-adds, at the full dense peak: max(output x weight bytes / (devices x W), flops / (devices x F)).
    """
    device, model, devices = deployment.cluster.device, deployment.model, deployment.layout.num_devices
    stored = shard(deployment).weight_bytes * deployment.layout.tp * deployment.layout.pp
    active = stored * min(1.0, model.num_active_parameters / max(1, model.num_parameters))
    _, peak = device.peak_flops_per_s(get_format(deployment.formats.activations).rates)
    tokens = workload.batch_size * (workload.input_tokens + workload.output_tokens)
    reading_s = workload.output_tokens * active / (devices * device.memory_bandwidth_bytes_per_s)
    return max(reading_s, 2.0 * model.num_active_parameters * tokens / (devices * peak))

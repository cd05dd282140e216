"""Predictions of other runs of the same engine or framework and device, under other constants.

A correction must not carry further than it was measured. So a few reference questions (other models, every mode) are
asked with the shipped constants and with the corrected ones: each answer may move to the end of its shipped 95 %
interval, or as far as the correction moved a prediction of the user's own runs and made it better, whichever is
further. Where one would move beyond that, all constants go only a part of their way. On other devices nothing moves.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from orrery.base.errors import OrreryError
from orrery.calibrate.runs.problem import Constants, Floats, Reference
from orrery.catalog.models import get_model
from orrery.execution.engine import Engine
from orrery.execution.formats import wide_format
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.execution.memory import Infeasible
from orrery.execution.train.framework import Framework
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import Sharding, TrainingLayout
from orrery.execution.train.recipe import Recipe
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device
from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload
from orrery.training.columns import columns_of
from orrery.training.error_range import spread_of
from orrery.training.step import step_of

MODELS = ("llama-3.2-1b", "llama-3.1-8b", "qwen3-32b", "llama-3.1-70b")
TENSOR = (1, 2, 4, 8)
WORKLOADS = (
    Workload(mode="static", input_tokens=512, output_tokens=128, batch_size=1),
    Workload(mode="static", input_tokens=512, output_tokens=128, batch_size=32),
    Workload(mode="static", input_tokens=4096, output_tokens=32, batch_size=8),
    Workload(mode="closed", input_tokens=1024, output_tokens=256, concurrency=1),
    Workload(mode="closed", input_tokens=1024, output_tokens=256, concurrency=64),
    Workload(mode="open", input_tokens=1024, output_tokens=256, request_rate_per_s=0.2),
    Workload(mode="offline", input_tokens=512, output_tokens=128, num_requests=512),
)
METRICS = ("ttft_s", "tpot_s", "latency_s", "output_tokens_per_s")
TRAINING: tuple[tuple[str, int, int, int, Sharding], ...] = (  # model, tp, pp, dp, sharding
    ("llama-3.2-1b", 1, 1, 1, "none"),
    ("llama-3.1-8b", 1, 1, 8, "zero3"),
    ("llama-3.1-8b", 8, 1, 1, "none"),
    ("llama-3.1-70b", 8, 4, 4, "zero1"),
)

INSIDE = 0.9
"""Largest move over the (log) way to the end of an interval: questions between the references stay inside, too."""

BEYOND = 1.1
"""Largest move over how far the user's own predictions went: references are not quite what the user ran."""

HALVINGS = 7


def part_of_the_way(references: Sequence[Reference], own: float, constants: Callable[[float], Constants]) -> float:
    """The largest share of a correction (``constants`` by share) under which no answer moves too far.

    ``own`` is how far a prediction of the user's own runs went; see ``furthest_move``.
    """

    def is_allowed(share: float) -> bool:
        return all(_is_within(r, own, constants(share)) for r in references)

    if is_allowed(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_allowed(middle) else (low, middle)
    return low


def _is_within(reference: Reference, own: float, constants: Constants) -> bool:
    found = reference.answers(constants)
    for metric, (value, interval) in reference.shipped.items():
        low, high = (INSIDE * np.log(end / value) for end in (interval.low_95, interval.high_95))
        if not min(low, -BEYOND * own) <= np.log(found[metric] / value) <= max(high, BEYOND * own):
            return False
    return True


def furthest_move(before: Floats, after: Floats) -> float:
    """Largest improvement of a prediction of the user's own runs, up or down (a logarithm).

    ``before`` and ``after`` are log(predicted / measured) with the shipped and with the corrected constants.
    """
    moved = np.abs(after - before)[np.abs(after) < np.abs(before)]
    return float(moved.max(initial=0.0))


def serving_references(engine: Engine, device: Device) -> Iterator[Reference]:
    """The reference models that fit, on as few devices as hold them, in every mode."""
    wide = wide_format(device)
    for model in map(get_model, MODELS):
        for tp in (t for t in TENSOR if t <= max(1, device.devices_per_node)):
            deployment = Deployment(
                model=model,
                layout=Layout(tp=tp),
                formats=Formats(weights=wide, activations=wide, kv=wide),
                cluster=Cluster(device=device, num_devices=tp, devices_per_node=device.devices_per_node),
                engine=engine,
            )
            found = [r for w in WORKLOADS if (r := _serving(deployment, w))]
            if found:
                yield from found
                break


def _serving(deployment: Deployment, workload: Workload) -> Reference | None:
    def answers(constants: Constants) -> Mapping[str, float]:
        found = estimate(replace(deployment, engine=replace(deployment.engine, **constants)), workload)
        return {} if isinstance(found, Infeasible) else {m: getattr(found, m) for m in METRICS}

    try:
        shipped = estimate(deployment, workload)
    except OrreryError:  # arrivals faster than such a model can be served
        return None
    if isinstance(shipped, Infeasible):
        return None
    known = {
        m: (getattr(shipped, m), i) for m in METRICS if (i := shipped.intervals.get(m)) and getattr(shipped, m) > 0
    }
    return Reference(answers=answers, shipped=known)


def training_references(framework: Framework, device: Device, recipe: Recipe) -> Iterator[Reference]:
    """The reference jobs; whether they fit in memory does not matter to their time."""
    for model, tp, pp, dp, sharding in TRAINING:
        layout = TrainingLayout(tp=tp, pp=pp, dp=dp, sharding=sharding)
        cluster = Cluster(
            device=device,
            num_devices=layout.num_devices,
            devices_per_node=min(device.devices_per_node, layout.num_devices),
        )
        job = TrainingJob(
            model=get_model(model),
            cluster=cluster,
            framework=framework,
            recipe=recipe,
            seq_len=4096,
            global_batch=8 * dp,
        )
        if found := _training(job, layout):
            yield found


def _training(job: TrainingJob, layout: TrainingLayout) -> Reference | None:
    columns = columns_of([layout])

    def answers(constants: Constants) -> Mapping[str, float]:
        steps = step_of(replace(job, framework=replace(job.framework, **constants)), columns)
        return {"step_time_s": float(steps.time_s[0]), "peak_memory_bytes": float(steps.memory_bytes[0])}

    try:
        shipped = answers({})
    except OrreryError:
        return None
    known = {m: (v, s.around(v)) for m, v in shipped.items() if (s := spread_of(job, m))}
    return Reference(answers=answers, shipped=known)

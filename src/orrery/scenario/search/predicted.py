"""Latencies of a search by a predictor that a few of the user's own timings adapt, in place of the kernel rules."""

from pathlib import Path

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.hardware.device import Device
from orrery.predictors.cells import rule
from orrery.predictors.cells.latency import Floats, machine
from orrery.predictors.cells.learned import Predictor, Samples, ignore
from orrery.predictors.cells.nas_bench_201 import nas_bench_201
from orrery.predictors.cells.pool import launch_s
from orrery.predictors.cells.techniques.hardware_embedding import reference_cells
from orrery.predictors.cells.timings import read_timings
from orrery.predictors.learn.scores import score

PREDICTORS = ("few-shot",)
RULE, NUM_TIMINGS, FEWEST_JUDGES = "hardware-embedding", 10, 3
TAUGHT_STEPS = 200


def check_predictor(predictor: str | None, measurements: str | None, kind: str, num_devices: int) -> None:
    """Refuse another word, one without the other, another space, and one machine's timings for several devices."""
    if (predictor is None) != (measurements is None):
        absent = "measurements" if measurements is None else "predictor"
        raise ScenarioError(
            f'{absent}: missing; write predictor = "few-shot" and measurements = "timings.csv" beside each other.'
        )
    if predictor is None:
        return
    if predictor not in PREDICTORS:
        raise ScenarioError(f"predictor: got {predictor[:80]!r}; write {', '.join(PREDICTORS)}.")
    if kind != "cells":
        raise ScenarioError(
            f"predictor: knows networks of cells alone; write space = cells, or leave it out of {kind}."
        )
    if num_devices != 1:
        raise ScenarioError("predictor: the timings are of one machine; write one device.")


def few_shot(measurements: Path, device: Device, batch: int, seed: int) -> tuple[Predictor, str]:
    """The predictor, adapted to the machine by its ten timings, and how it does on the user's other timings."""
    space, references = nas_bench_201(), reference_cells(NUM_TIMINGS)
    latency_s, others, others_s = read_timings(measurements, space, references)
    nominal = machine(device, space, batch, launch_s(device))
    timed = Samples(cells=references, latency_s=latency_s, nominal=nominal, alone_s=nominal.alone_s())
    predict = rule(RULE, ignore, seed=seed, steps=TAUGHT_STEPS)(timed)
    return predict, _said(predict(others), others_s) if len(others) >= FEWEST_JUDGES else _unjudged(len(others))


def _said(predicted_s: Floats, true_s: Floats) -> str:
    found = score(np.asarray(predicted_s), true_s)
    return (
        f"latency: learnt over simulated machines and adapted by {NUM_TIMINGS} timings; over the other {len(true_s)} "
        f"of yours it ranks with a correlation of {found.rank_correlation:.3f}, half of them within "
        f"{percent(found.median_error_frac, 1)}"
    )


def _unjudged(count: int) -> str:
    return (
        f"latency: learnt over simulated machines and adapted by {NUM_TIMINGS} timings; {count} more are too few to "
        f"judge it by: time {FEWEST_JUDGES} or more"
    )

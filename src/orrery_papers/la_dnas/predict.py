"""Latency-aware DARTS: a perceptron's error on drawn networks, and what its output in the loss of a search is worth."""

from collections.abc import Iterator

import numpy as np

from orrery.base.units import percent
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.predictors.cells.darts import darts
from orrery.predictors.cells.learned import Bench, ignore
from orrery.predictors.cells.pool import bench
from orrery.predictors.studies.cell_latency import PERCEPTRON, predicted
from orrery.predictors.studies.latency_aware_search import EQUAL_FRAC, searched
from orrery_papers.la_dnas.reduction import reduction_at

DRAWN = 50_000
NEAR_FRAC = 0.01
"""Networks within this of so many multiply-adds count as having them."""

SMALL_LOSS_FRAC = 0.05


def predict(paper: Paper) -> Iterator[Prediction]:
    """The spread at equal work, errors at two numbers of samples, and the search."""
    setup = paper.setups["p100"]
    batch, steps = int(setup.number("num_batch")), int(setup.number("num_steps"))
    machine = bench(get_device(setup.word("device")), darts(), batch)
    yield spread(machine, setup.numbers("flops_swept")[0])
    sizes = tuple(map(int, setup.numbers("samples_swept")))
    rows = {row["num_samples"]: row for row in predicted(machine, sizes, 0, steps, ignore) if row["rule"] == PERCEPTRON}
    fewer, more = (float(rows[size]["mean_error_frac"]) for size in sizes)
    at_all = rows[int(setup.number("num_samples"))]
    yield Prediction(
        claim="relative-error",
        predicted=float(at_all["mean_error_frac"]),
        because=f"median {percent(float(at_all['median_error_frac']), 2)}, judged without the noise of timings; the "
        "kernel rules are smoother than a real card",
    )
    yield Prediction(
        claim="past-40k",
        predicted=fewer / more,
        because=f"{percent(fewer, 2)} with {sizes[0]:,}, {percent(more, 2)} with {sizes[1]:,}",
        differs="errors are judged without the noise of timings, which hides what more samples still gain",
    )
    found = searched(machine, 0, steps, ignore)
    little, by_work = reduction_at(found, "latency", SMALL_LOSS_FRAC), reduction_at(found, "multiply-adds", EQUAL_FRAC)
    yield Prediction(
        claim="latency-reduction",
        predicted=reduction_at(found, "latency", EQUAL_FRAC),
        because=f"where {percent(EQUAL_FRAC)} of what a search gains over drawn networks is lost; {percent(by_work)} "
        f"with multiply-adds in the loss, {percent(little)} where {percent(SMALL_LOSS_FRAC)} is lost",
        differs="quality is a stand-in that the search sees without noise; how much of it counts as preserved, and how "
        "far tasks differ in what suits them (0.23 to 0.34), decide the number",
    )


def spread(machine: Bench, flops: float) -> Prediction:
    """The slowest over the fastest among drawn networks of about so many multiply-adds an image."""
    plan = machine.truth.plan
    cells = plan.space.draw(DRAWN, np.random.default_rng(0))
    work = plan.total(plan.flops, cells) / plan.batch
    alike = machine.truth.latency_s(cells[np.abs(work / flops - 1.0) < NEAR_FRAC])
    return Prediction(
        claim="spread-at-equal-work",
        predicted=float(alike.max() / alike.min()),
        because=f"{alike.min() * 1e3:.1f} to {alike.max() * 1e3:.1f} ms over {alike.size:,} drawn networks: depthwise "
        "taps, norms and rectifiers cost time and hardly any multiply-adds",
        differs="kernels by rules, which are smoother over shapes than a library's choices on a real card",
    )

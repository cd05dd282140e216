"""Networks of cells: their work as published, their time as played out kernel by kernel, and the plain predictors."""

from itertools import pairwise

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.predictors.cells import rule
from orrery.predictors.cells.darts import OPERATIONS, darts
from orrery.predictors.cells.latency import Machine, machine, plan
from orrery.predictors.cells.learned import Bench
from orrery.predictors.cells.nas_bench_201 import nas_bench_201
from orrery.predictors.cells.pool import bench, devices_of
from orrery.predictors.cells.space import Chosen
from orrery.predictors.learn.scores import score

SPACES = (darts(), nas_bench_201())
both = pytest.mark.parametrize("space", SPACES, ids=[space.name for space in SPACES])
P100 = get_device("p100-pcie-16gb")


def multiply_adds(space, cells):
    known = plan(space, 1)
    return known.total(known.flops, np.array([cells]))[0] / 2


def darts_cell(*edges):
    names = [operation.name for operation in OPERATIONS]
    return [entered * len(names) + names.index(name) for name, entered in edges]


def quiet(space, batch=8, launch_s=1e-5):
    found = machine(P100, space, batch, launch_s)
    return Bench(truth=found, nominal=found, noise_frac=0.0)


def test_work_of_nas_bench_201_is_the_published():
    assert multiply_adds(nas_bench_201(), [3] * 6) == pytest.approx(
        220.12e6, rel=1e-5
    )  # every edge a 3 x 3 convolution
    assert multiply_adds(nas_bench_201(), [0] * 6) == pytest.approx(7.78e6, rel=1e-3)  # nothing on any edge


def test_work_of_the_published_darts_cells_is_near_the_published():
    separable, pool = "separable-3x3", "max-pool-3x3"
    normal = darts_cell(
        (separable, 0),
        (separable, 1),
        (separable, 0),
        (separable, 1),
        (separable, 1),
        ("skip", 0),
        ("skip", 0),
        ("dilated-3x3", 2),
    )
    reduction = darts_cell((pool, 0), (pool, 1), ("skip", 2), (pool, 1), (pool, 0), ("skip", 2), ("skip", 2), (pool, 1))
    assert multiply_adds(darts(), normal + reduction) == pytest.approx(574e6, rel=0.1)


@both
def test_lines_count_choices_and_weigh_like_networks(space):
    cells = space.draw(50, np.random.default_rng(0))
    assert all((cells[:, i] < count).all() for i, count in enumerate(space.num_alternatives))
    lines, known = space.encode(cells), plan(space, 4)
    assert (lines.sum(axis=1) == len(space.num_alternatives)).all()
    constant, weights = known.by_column(known.flops)
    assert constant + lines @ weights == pytest.approx(known.total(known.flops, cells), rel=1e-6)


@both
def test_networks_take_what_their_kernels_take_one_by_one(space):
    known, found = plan(space, 4), machine(P100, space, 4, 1e-5)
    first = np.concatenate([[0], np.cumsum(known.sizes)])
    at = {id(kernel): found.kernel_s[i] for i, kernel in enumerate(known.kernels)}
    blocks = {known.kernels[a:b]: [at[id(k)] for k in known.kernels[a:b]] for a, b in pairwise(first)}
    for cells in space.draw(5, np.random.default_rng(1)):
        issued = end = 0.0
        for step in space.route(4):
            for time in blocks[step.blocks[cells[step.choice]] if isinstance(step, Chosen) else step]:
                issued += 1e-5
                end = max(end, issued) + time
        assert found.latency_s(cells[None])[0] == pytest.approx(end, rel=1e-9)


@both
def test_quick_launches_leave_the_sum_of_kernels_and_slow_ones_themselves(space):
    cells, known = space.draw(20, np.random.default_rng(2)), plan(space, 8)
    quick, slow = (machine(P100, space, 8, launch_s) for launch_s in (1e-12, 1.0))
    _, busy, _ = quick.blocks()
    assert quick.latency_s(cells) == pytest.approx(known.total(busy, cells), rel=1e-5)
    assert slow.latency_s(cells) == pytest.approx(known.total(known.sizes.astype(float), cells), rel=1e-3)


def test_a_table_of_operations_is_exact_only_while_the_device_is_busy():
    space, rng = darts(), np.random.default_rng(3)
    cells = space.draw(200, rng)
    errors = {}
    for batch in (8, 128):
        found = quiet(space, batch)
        predictor = rule("operation-table")(found.samples(cells[:1], rng))
        errors[batch] = score(predictor(cells), found.truth.latency_s(cells)).mean_error_frac
    assert errors[128] < 0.01 < 0.05 < errors[8]


def test_a_line_over_encodings_is_exact_where_latencies_add_up():
    found, rng = quiet(nas_bench_201(), launch_s=1e-12), np.random.default_rng(4)
    cells = nas_bench_201().draw(400, rng)
    fit = rule("encoded-line", ridge_ratio=1e-6)(found.samples(cells[:200], rng))
    assert fit(cells[200:]) == pytest.approx(found.truth.latency_s(cells[200:]), rel=1e-3)


def test_refitting_finds_the_ratios_of_a_machine():
    space, rng = nas_bench_201(), np.random.default_rng(5)
    nominal = machine(P100, space, 64, 1e-6)
    other = Bench(truth=nominal.scaled(np.array([1.5, 1.0, 0.6, 1.0])), nominal=nominal, noise_frac=0.0)
    cells = space.draw(200, rng)
    fit = rule("physics-refit", noise_frac=1e-4)(other.samples(cells[:10], rng))
    assert fit(cells) == pytest.approx(other.truth.latency_s(cells), rel=5e-3)
    assert score(nominal.latency_s(cells), other.truth.latency_s(cells)).mean_error_frac > 0.05


def test_multiply_adds_never_rank_more_work_as_faster():
    found, rng = quiet(nas_bench_201()), np.random.default_rng(6)
    samples = found.samples(nas_bench_201().draw(2, rng), rng)
    backwards = type(samples)(
        cells=samples.cells, latency_s=samples.latency_s[::-1], nominal=samples.nominal, alone_s=samples.alone_s
    )
    cells = nas_bench_201().draw(100, rng)
    work = samples.plan.total(samples.plan.flops, cells)
    assert (np.diff(rule("flops-line")(backwards)(cells)[np.argsort(work)]) >= 0.0).all()


def test_simulated_machines_differ_from_their_data_sheets_and_from_each_other():
    space, cells = nas_bench_201(), np.full((1, 6), 3)
    rng = np.random.default_rng(7)
    drawn = [bench(P100, space, 32, rng) for _ in range(3)]
    assert len({float(b.truth.latency_s(cells)[0]) for b in drawn} | {float(drawn[0].nominal.latency_s(cells)[0])}) == 4
    assert isinstance(bench(P100, space, 32).truth, Machine)
    again = bench(P100, space, 32, np.random.default_rng(7)).truth.latency_s(cells)
    assert again == drawn[0].truth.latency_s(cells)


def test_kinds_that_are_held_out_are_not_in_the_pool():
    pool, held = devices_of("NVIDIA, cpu"), devices_of("tpu, npu, AMD", but="NVIDIA, cpu")
    assert len(pool) > 50
    assert {d.kind for d in held} >= {"tpu", "npu", "gpu"}
    assert not {d.kind for d in held} & {"cpu"}
    assert not {d.name for d in pool} & {d.name for d in held}


def test_an_unknown_rule_or_knob_is_refused():
    with pytest.raises(ScenarioError, match="flops-line"):
        rule("flops-lime")
    with pytest.raises(ScenarioError, match="hidden"):
        rule("encoded-perceptron", hidden=0)

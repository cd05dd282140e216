"""Steps of optimisers, losses, codes, sums and drawn tensors, each worked out by hand or by its definition."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.numerics.adam import Adam
from orrery.numerics.arithmetic.accumulation import Platform, product
from orrery.numerics.arithmetic.integer import bitwise_root, fixed_newton_root, newton_root, share
from orrery.numerics.arithmetic.matmul import FewBitWeights
from orrery.numerics.arithmetic.techniques.gelu_exact import rule as exact_gelu
from orrery.numerics.arithmetic.techniques.matmul_ternary import rule as ternary
from orrery.numerics.codec.pieces import View, each_row
from orrery.numerics.draws import correlated, draw
from orrery.numerics.experiments import fitting
from orrery.numerics.experiments.fitting import Plan, answers, fit
from orrery.numerics.experiments.losses import cross_entropy, sharpness_frac, squared_error
from orrery.numerics.experiments.studies.dfp import Counts, FixedPointProduct, _row
from orrery.numerics.experiments.tasks import classification, own_points, regression, text
from orrery.numerics.laws.coefficients import coefficients
from orrery.numerics.laws.fp_quantisation import Law, Run, best_split, compute_flops
from orrery.numerics.power_exponent import codes_of, raised, values_of
from orrery.numerics.recipes.learned import FREE_FRAC, Learning, _halves_gradient, _Problem, _rectified
from orrery.scenario.experiment import run_experiment

# --- optimisers and losses


def test_two_steps_of_adam():
    """Gradients of 4, then 0: means (0.4, then 0.36) / (0.1, 0.19); squares (0.16, 0.1584) / (0.01, 0.0199)."""
    moving = Adam(rate=0.5)
    assert moving.step(np.array([4.0, -4.0])) == pytest.approx([0.5, -0.5])
    want = 0.5 * (0.36 / 0.19) / np.sqrt(0.1584 / 0.0199)
    assert moving.step(np.zeros(2)) == pytest.approx([want, -want])
    assert Adam(rate=0.5).step(np.zeros(1)).tolist() == [0]


def test_losses_and_their_slopes():
    """Squares of 1 and -3 have the mean 5 and slopes of 2 d / 2; two places of log sum exp less the target's."""
    value, slope = squared_error(np.array([2.0, -1.0]), np.array([1.0, 2.0]))
    assert (value, slope.tolist()) == (5, [1, -3])
    z, t = np.log(np.array([[1.0, 3.0], [6.0, 2.0]])), np.array([1, 1])
    value, slope = cross_entropy(z, t)
    assert value == pytest.approx((np.log(4 / 3) + np.log(4)) / 2)
    np.testing.assert_allclose(slope, np.array([[0.25, -0.25], [0.75, -0.75]]) / 2)
    moved = z + 0.01 * (1 + np.abs(z)) * np.array([[1, -1], [1, -1]])
    rise = cross_entropy(moved, t)[0] - value
    assert sharpness_frac(z, t, reach=0.01) == pytest.approx(rise / (1 + value))


def test_a_fit_moves_weights_by_its_plan(monkeypatch):
    """One weight, a slope of 1 each step: Adam's steps are its rates. 20 steps with a warm-up of 10 %: half, whole,
    then a cosine to a tenth."""
    plan = Plan(steps=20, points=3, learning_rate=0.5, warmup_frac=0.1, held_out=2)
    falling = [0.55 + 0.45 * np.cos(np.pi * i / 20) for i in range(20)]
    assert [plan.rate(i) for i in (0, 1, 2, 19)] == pytest.approx(
        [0.25 * falling[0], 0.5 * falling[1], 0.5 * falling[2], 0.5 * falling[19]]
    )
    assert Plan(steps=1).rate(0) == pytest.approx(3e-3)
    seen, ticks = [], []

    def step(run):
        def backward(dy):
            run.gradients["w"] = np.ones(1)

        return lambda x: (x * run.weights["w"], backward)

    network = SimpleNamespace(step=step)
    monkeypatch.setattr(fitting, "Pass", lambda **more: SimpleNamespace(gradients={}, **more))

    def drawn(points, rng):
        seen.append(points)
        return np.ones(points), np.zeros(points)

    task = SimpleNamespace(draw=drawn, loss=lambda y, t: (float(y.mean()), y))
    found = fit(network, task, None, plan, begin={"w": np.array([10.0])}, on_step=lambda: ticks.append(1))
    moved = np.cumsum([plan.rate(i) for i in range(20)])
    assert found.weights["w"] == pytest.approx([10 - moved[-1]], rel=1e-5)
    assert found.losses == pytest.approx([10, *(10 - moved[:-1])], rel=1e-5)
    assert found.held_out_loss == pytest.approx(10 - moved[-1], rel=1e-5)
    assert (seen, len(ticks), found.is_finite) == ([3] * 20 + [2], 20, True)
    logits, targets = answers(network, {"w": np.array([2.0])}, task, None, 0, 5)
    assert (logits.tolist(), targets.tolist()) == ([2] * 5, [0] * 5)


def test_the_slopes_of_learned_rounding():
    """Of the stretched sigmoid, of the quadratic output error and of the price of halves, each by small differences."""
    v = np.array([-4.0, -1.5, 0.3, 2.0, 4.0])
    h, slope = _rectified(v)
    assert h.tolist()[0] == 0
    assert h.tolist()[-1] == 1
    assert h[2] == pytest.approx(1.2 / (1 + np.exp(-0.3)) - 0.1)
    near = (_rectified(v + 1e-6)[0] - _rectified(v - 1e-6)[0]) / 2e-6
    np.testing.assert_allclose(slope, near, atol=1e-8)

    rng = np.random.default_rng(0)
    weights, nearest, x, seen = (rng.standard_normal(s) for s in ((2, 3), (2, 3), (5, 3), (5, 3)))
    problem = _Problem.of(weights, nearest, x, seen)

    def error(tried):
        return np.sum((x @ weights.T - seen @ tried.T) ** 2)

    unit = error(nearest) / 6
    for at in np.ndindex(2, 3):
        moved = np.zeros((2, 3))
        moved[at] = 1e-6
        want = (error(nearest + moved) - error(nearest - moved)) / 2e-6 / unit
        assert problem.gradient(nearest)[at] == pytest.approx(want, rel=1e-5)

    halves = np.array([0.1, 0.45, 0.8])
    assert not _halves_gradient(halves, FREE_FRAC - 0.01).any()
    for done, beta in ((FREE_FRAC, 20.0), (0.6, 11.0), (1.0, 2.0)):

        def price(h, beta=beta):
            return 1 - np.abs(2 * h - 1) ** beta

        want = (price(halves + 1e-7) - price(halves - 1e-7)) / 2e-7
        np.testing.assert_allclose(_halves_gradient(halves, done), want, rtol=1e-5, atol=1e-9)
    assert Learning().num_steps == 500


# --- powers of numbers


def test_codes_of_numbers_raised_to_a_power():
    """Four bits, codes up to 7, a root: a quarter of the row's largest is at 3.5, which rounds to 4."""
    x = np.array([[0.04, -0.01, 0.0, 0.0004], [8.0, 2.0, -8.0, 0.5], [0.0, 0.0, 0.0, 0.0]])
    codes, scale = codes_of(x, 4, 0.5)
    assert scale.ravel().tolist() == [0.04, 8, 1]
    assert codes.tolist() == [[7, -4, 0, 1], [7, 4, -7, 2], [0, 0, 0, 0]]
    values = values_of(codes, scale, 4, 0.5)
    np.testing.assert_allclose(values[1], [8, 8 * 16 / 49, -8, 8 * 4 / 49])
    assert raised([-9.0, 4.0, 0.0], 0.5).tolist() == [-3, 2, 0]
    for bits in (1, 17):
        with pytest.raises(Exception, match="write 2 to 16"):
            codes_of(x, bits, 0.5)
    assert codes_of(np.array([1.0, 0.5]), 2, 1.0)[0].tolist() == [1, 0]
    assert codes_of(np.array([1.0]), 16, 1.0)[0].tolist() == [32767]


# --- whole numbers


def test_roots_and_shares_of_whole_numbers():
    n = np.array([1, 2, 3, 4, 15, 16, 17, 10**6 - 1, 10**6, 2**40 + 5])
    want = [1, 1, 1, 2, 3, 4, 4, 999, 1000, 2**20]
    assert newton_root(n).tolist() == bitwise_root(n).tolist() == want
    assert bitwise_root(np.array([0, 2**61])).tolist() == [0, 1518500249]
    assert newton_root(np.array([8])).tolist() == [2]
    assert fixed_newton_root(np.array([2**32])).tolist() == [2**16]
    assert fixed_newton_root(np.array([2**24])).tolist() == [2**12]
    root = 2**16
    for _ in range(10):
        root = (root + 9 // root) >> 1
    assert fixed_newton_root(np.array([9])).tolist() == [root]
    part, whole = np.array([0, 1, 1, 3]), np.array([4, 4, 3, 4])
    assert share(part, whole, 8).tolist() == [0, 64, 85, 192]
    assert share(whole, whole, 8).tolist() == [255] * 4


def test_lanes_take_groups_in_turn_and_fold():
    """Eight products of 2^24 and ones: alone in one lane they are lost, in a second lane they add up first."""
    x = np.array([[2.0**12, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]])
    weights = np.array([[2.0**12, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]])

    def summed(**more):
        return float(product(x, weights, Platform(num_guard_bits=None, **more))[0, 0])

    assert summed(num_fused=1) == 2.0**24
    assert summed(num_fused=1, num_lanes=2) == 2.0**24 + 4
    assert summed(num_fused=8) == 2.0**24 + 4
    assert summed(num_fused=1, num_splits=2) == 2.0**24 + 2
    assert summed(num_fused=1, tile_products=4) == 2.0**24 + 2
    assert summed(num_fused=1, num_lanes=3) == 2.0**24 + 2  # lanes of 0 3 6, 1 4 7 and 2 5: the first takes the third's


def test_products_in_fixed_point_count_their_spills():
    """Two rows by three, five products each; two in an accumulator make three spills a sum."""
    counts = Counts()
    a, b = np.arange(10.0).reshape(2, 5) / 8, np.arange(15.0).reshape(3, 5) / 4
    rule = FixedPointProduct(bits=16, chain=2, counts=counts)
    np.testing.assert_allclose(rule(a, b, None), a @ b.T, rtol=1e-3)
    assert (counts.sums, counts.spills, counts.overflows) == (6, 18, 0)
    rule(a, b, None)
    assert (counts.sums, counts.spills) == (12, 36)
    safe = FixedPointProduct(bits=4, chain=0, counts=counts)
    safe(a, b, None)
    assert counts.spills == 36 + 6
    long = FixedPointProduct(bits=16, chain=5, counts=counts)
    long(np.full((1, 5), 1.99), np.full((1, 5), 1.99), None)
    assert counts.overflows == 1
    for broken in (np.inf, np.nan):
        a[0, 0] = broken
        assert np.isnan(rule(a, b, None)).all()
        assert np.isnan(rule(b, a, None)).all()


def test_training_in_fixed_point():
    """FP32 counts nothing; one product to an accumulator spills a sum of up to 32 products as often as it has them."""
    rows = run_experiment("dfp", steps=2, sizes=["bits=8", "hidden=4", "points=4", "chain=1"]).rows
    assert [row["products"] for row in rows] == ["fp32", "dfp8"]
    assert rows[0]["spills_per_sum"] == rows[0]["overflow_frac"] == rows[1]["overflow_frac"] == 0
    # forward and judged: 32 and 4 products for 4 and 16 sums a point; back: 16 for 4; weights: 4 points for 128 and 64
    forward, points = (32 * 4 + 4 * 16, 4 + 16), 2 * 4 + 512
    spills = points * forward[0] + 2 * (4 * 16 * 4 + 4 * (128 + 64))
    sums = points * forward[1] + 2 * (4 * 4 + 128 + 64)
    assert rows[1]["spills_per_sum"] == pytest.approx(spills / sums, rel=0.05)
    for size, says in (("bits=1", "bits"), ("bits=17", "bits"), ("hidden=0", "hidden"), ("points=0", "points")):
        with pytest.raises(Exception, match=says):
            run_experiment("dfp", steps=1, sizes=[size])


def test_three_quarters_of_the_users_points_are_learned():
    points = {"x": np.stack([np.arange(17.0), np.ones(17)], axis=1), "y": np.arange(17) % 3}
    lessons = own_points(points, 0)
    assert (lessons.num_inputs, lessons.num_outputs) == (2, 3)
    rng = np.random.default_rng(0)
    seen, held = (set(task.draw(300, rng)[0][:, 0].tolist()) for task in (lessons.learned, lessons.judged))
    assert (len(seen), len(held), len(seen | held)) == (12, 5, 17)
    assert lessons.learned.least_loss == 0
    wide = own_points(points, 0, 4)  # two features that are always zero and a class that never comes
    assert (wide.num_inputs, wide.num_outputs) == (4, 4)
    assert not wide.learned.draw(9, rng)[0][:, 2:].any()


def test_a_row_of_an_experiment():
    counts = Counts(sums=4, spills=10, overflows=5)
    logits, targets = np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 3.0]]), np.array([1, 0, 0])
    assert _row("dfp8", 0.5, logits, targets, counts) == {
        "products": "dfp8",
        "loss": 0.5,
        "accuracy_frac": pytest.approx(2 / 3),
        "spills_per_sum": 2.5,
        "overflow_frac": 0.5,
    }


def test_ternary_weights_add_and_subtract():
    """Codes 0, 1, 2 are -1, 0 and 1."""
    codes, scales = np.array([[2, 0, 1], [1, 1, 1]]), np.array([[0.5], [3.0]])
    weights = FewBitWeights(codes=codes, scales=scales, zeros=np.ones((2, 1)), bits=2)
    found = ternary(np.array([[5.0, 2.0, 7.0]]), weights, None)
    assert found.values.tolist() == [[0.5 * (5 - 2), 0]]
    assert (found.counts.num_adds, found.counts.num_scalings) == (2, 2)
    for wrong in (
        {"zeros": np.zeros((2, 1))},
        {"codes": codes + 1},
        {"scales": np.ones((2, 3)), "zeros": np.ones((2, 3))},
    ):
        with pytest.raises(Exception, match="not ternary"):
            ternary(np.array([[5.0, 2.0, 7.0]]), replace(weights, **wrong), None)


def test_gelu_by_its_definition():
    """x times the share of a normal below it: 0.8413 at 1."""
    found = exact_gelu(np.array([2.0, -2.0, 0.0]), 0.5, None)
    np.testing.assert_allclose(found.codes, [0.8413447460685429, -0.15865525393145707, 0])
    assert found.step_ratio == 1


# --- tensors


def test_rows_of_blocks():
    """Two matrices of 5 rows in blocks of 2 are three rows of blocks each; 7 columns in groups of 3 are three."""
    view = View(rows=10, columns=7, size=3, block_rows=2, matrix_rows=5)
    assert (view.groups, view.row_blocks) == (3, 6)
    assert view.starts().tolist() == [0, 2, 4, 5, 7, 9]
    assert each_row(np.float32([[1], [2], [3]]), np.array([0, 2, 4]), 5).ravel().tolist() == [1, 1, 2, 2, 3]


def test_drawn_tensors_are_what_their_names_say():
    rng = np.random.default_rng(0)
    x = correlated(2000, 512, rng)
    assert (x.var(), np.var(np.corrcoef(x.T)[np.triu_indices(512, 1)])) == pytest.approx((1, 0.25 / 64), rel=0.1)
    sizes = {name: draw(name, (1000, 200), 1) for name in ("normal", "uniform", "laplace", "student_t", "weights")}
    assert np.abs(sizes["uniform"]).max() <= 1
    assert sizes["normal"].std() == pytest.approx(1, abs=0.01)
    assert sizes["laplace"].std() == pytest.approx(np.sqrt(2), abs=0.02)
    assert sizes["student_t"].std() == pytest.approx(np.sqrt(5 / 3), abs=0.03)
    assert np.sqrt((sizes["weights"] ** 2).mean()) == pytest.approx(np.exp(0.0625) / np.sqrt(200), rel=0.03)
    loud = np.sort(draw("outliers", (500, 400), 1).std(axis=0))
    assert loud[-5] < 5 < loud[-4]  # one channel of a hundred
    with pytest.raises(Exception, match="1 or more"):
        draw("normal", (2, 0))
    with pytest.raises(Exception, match="1 or more"):
        draw("normal", ())
    assert draw("normal", (1,)).shape == (1,)


def test_tasks_that_networks_learn():
    x, targets = classification(3, num_inputs=4, num_classes=3, num_clusters=2).draw(4000, np.random.default_rng(0))
    assert x.shape == (4000, 4)
    assert sorted(set(targets.tolist())) == [0, 1, 2]
    assert np.bincount(targets) / 4000 == pytest.approx(np.full(3, 1 / 3), abs=0.05)
    x, y = regression(0, num_inputs=8, num_outputs=2).draw(4000, np.random.default_rng(0))
    assert np.mean(x**2) == pytest.approx(1, abs=0.1)
    assert y.shape == (4000, 2)
    read, following = text(0, vocabulary=4, tokens=6).draw(5, np.random.default_rng(0))
    assert read.shape == following.shape == (5, 6)
    assert read[:, 1:].tolist() == following[:, :-1].tolist()
    assert {classification(0).least_loss, regression(0).least_loss} == {0}
    assert 0 < text(0, vocabulary=4, tokens=6).least_loss < np.log(4)


# --- laws


def test_a_run_of_the_law_by_hand():
    c = coefficients("fp-quantisation")
    run = Run(num_parameters=1e9, num_tokens=2e10, exponent_bits=4, mantissa_bits=3, block_elements=32)
    lossless = c["n"] / 1e9 ** c["alpha"] + c["d"] / 2e10 ** c["beta"] + c["epsilon"]
    coarse = 5 / (c["gamma"] * 4.5 ** c["delta"] * 3.5 ** c["nu"])
    assert run.bits == 8
    assert run.lossless == pytest.approx(lossless)
    assert run.loss == pytest.approx(lossless + 2e10 ** c["beta"] / 1e9 ** c["alpha"] * coarse)
    assert run.critical_tokens == pytest.approx((c["d"] / coarse * 1e9 ** c["alpha"]) ** (0.5 / c["beta"]))
    assert run.compute_flops == pytest.approx(c["num_flops_per_bit"] * 8 * 2e19) == compute_flops(1e9, 2e10, 8)
    own = Law(n=2.0, alpha=0.5, d=3.0, beta=0.5, epsilon=1.0, gamma=4.0, delta=1.0, nu=2.0, num_flops_per_bit=0.5)
    mine = replace(run, num_parameters=100.0, num_tokens=900.0, exponent_bits=2, mantissa_bits=1, law=own)
    coarse = 5 / (4.0 * 2.5 * 1.5**2)  # log2 of 32 elements over gamma (E + 1/2)^delta (M + 1/2)^nu
    assert mine.lossless == pytest.approx(2 / 10 + 3 / 30 + 1)
    assert mine.loss == pytest.approx(1.3 + 30 / 10 * coarse)
    assert mine.critical_tokens == pytest.approx(3 / coarse * 10)
    assert mine.compute_flops == 0.5 * 4 * 100 * 900
    assert best_split(8, own) == (2, 5)  # (E + 1/2) (M + 1/2)^2 is largest: 2.5 x 5.5^2 = 75.6, 3.5 x 4.5^2 = 70.9
    assert best_split(3) == (1, 1)
    with pytest.raises(Exception, match="write 3 or more"):
        best_split(2)

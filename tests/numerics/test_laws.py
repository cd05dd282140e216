"""Scaling laws of low precision: against their own derivatives, their authors' runs, and known limits."""

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.numerics.laws import fp_quantisation as law
from orrery.numerics.laws import quartet
from orrery.numerics.laws.coefficients import FOLDER, coefficients, facts_of

EACH = pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.toml")))


@EACH
def test_every_coefficient_is_a_number_and_says_where_it_is_from(name):
    assert all(np.isfinite(value) for value in coefficients(name).values())
    assert all(fact.source or fact.note for fact in facts_of(name).values())


@pytest.mark.parametrize(("parameters", "block"), [(1e8, 32), (1e9, 128), (7e10, 16)])
@pytest.mark.parametrize("split", [(2, 1), (4, 3), (5, 2), (8, 7)])
def test_the_loss_is_least_at_the_critical_data_size(parameters, block, split):
    best = law.critical_tokens(parameters, *split, block)
    losses = [law.loss(parameters, best * factor, *split, block) for factor in (0.5, 0.98, 1.0, 1.02, 2.0)]
    assert losses[2] == min(losses)
    assert losses[0] > losses[1] > losses[2] < losses[3] < losses[4]


def test_scales_of_their_own_for_all_numbers_cost_nothing():
    assert law.added(1e9, 1e11, 4, 3, 1) == 0.0
    assert law.loss(1e9, 1e11, 4, 3, 1) == law.lossless(1e9, 1e11)
    assert law.critical_tokens(1e9, 4, 3, 1) == np.inf


def test_more_bits_smaller_blocks_and_larger_models_lose_less():
    def added(parameters=1e9, tokens=1e11, exponent=4, mantissa=3, block=128):
        return law.added(parameters, tokens, exponent, mantissa, block)

    assert added(exponent=5) < added() > added(mantissa=4)
    assert added(block=32) < added() > added(parameters=2e9)
    assert added(tokens=2e11) > added()


@pytest.mark.parametrize("bits", law.WIDTHS)
def test_the_best_split_is_the_best_of_all_splits_in_loss(bits):
    losses = {(e, bits - 1 - e): law.loss(1e9, 1e11, e, bits - 1 - e, 128) for e in range(1, bits - 1)}
    assert law.best_split(bits) == min(losses, key=losses.__getitem__)


def test_the_splits_that_hardware_has_are_the_best():
    assert [law.best_split(bits) for bits in (4, 8, 16)] == [(2, 1), (4, 3), (8, 7)]
    with pytest.raises(OutOfRange, match="2 bits"):
        law.best_split(2)


def test_critical_data_sizes_are_those_of_the_paper():
    found = [law.critical_tokens(1e9, *split, 128) / 1e12 for split in ((8, 7), (4, 3), (2, 1))]
    assert found == pytest.approx([1730, 27, 0.4], rel=0.03)


def test_a_budget_is_spent_whole_and_nothing_near_by_is_better():
    spent = law.best_width(1e23, 128)
    used = law.compute_flops(spent.num_parameters, spent.num_tokens, spent.bits)
    assert used == pytest.approx(1e23)
    for factor in (0.9, 1.1):
        size = spent.num_parameters * factor
        split = (spent.exponent_bits, spent.mantissa_bits)
        assert law.loss(size, spent.num_tokens / factor, *split, 128) >= spent.loss
    assert all(law.spend(1e23, bits, 128).loss >= spent.loss for bits in law.WIDTHS)


def test_a_16_bit_run_costs_six_operations_a_parameter_and_token():
    assert law.compute_flops(1e9, 2e10, 16) == pytest.approx(6 * 1e9 * 2e10)


def test_the_best_width_is_between_four_and_eight_bits_and_grows_with_the_budget():
    widths = [law.best_width(10.0**power, 128).bits for power in range(21, 32)]
    assert widths == sorted(widths)
    assert 4 <= widths[0] <= widths[-1] <= 8


STEP_TOKENS = 512 * 512
RUNS = {
    "both wide": [
        (30482560, 2861, 3.41571),
        (30482560, 22888, 3.1470),
        (49556736, 19073, 3.0677),
        (102777856, 38146, 2.88578),
        (102777856, 152587, 2.79347),
        (203188480, 76293, 2.73594),
    ],
    "forward": [
        (30482560, 2861, 3.48209),
        (30482560, 22888, 3.23693),
        (49556736, 19073, 3.14552),
        (102777856, 38146, 2.9613),
        (102777856, 152587, 2.87995),
        (203188480, 76293, 2.80348),
    ],
    "backward": [
        (30482560, 2861, 3.4302),
        (30482560, 22888, 3.15739),
        (49556736, 19073, 3.08219),
        (102777856, 38146, 2.90044),
        (102777856, 152587, 2.80412),
        (203188480, 76293, 2.74316),
    ],
    "both": [
        (30482560, 2861, 3.50033),
        (30482560, 22888, 3.24354),
        (49556736, 19073, 3.15832),
        (102777856, 38146, 2.97248),
        (102777856, 152587, 2.88647),
        (203188480, 76293, 2.81429),
    ],
}
"""Parameters, steps and losses of runs of IST-DASLab/Quartet (notebooks/plots.ipynb): MXFP4 in the passes named."""


def runs(kind):
    return [(size, steps * STEP_TOKENS, loss) for size, steps, loss in RUNS[kind]]


@pytest.mark.parametrize("kind", RUNS)
def test_the_law_repeats_the_losses_of_the_authors_runs(kind):
    method = quartet.known_method()
    fracs = {
        "both wide": (1.0, 1.0),
        "forward": (method.parameters_frac, 1.0),
        "backward": (1.0, method.tokens_frac),
        "both": (method.parameters_frac, method.tokens_frac),
    }
    for size, tokens, seen in runs(kind):
        assert quartet.loss(size, tokens, *fracs[kind]) == pytest.approx(seen, rel=0.005)


def test_effective_shares_are_found_again_from_runs():
    method = quartet.known_method()
    assert quartet.fitted_frac(runs("forward"), "parameters") == pytest.approx(method.parameters_frac, rel=0.05)
    assert quartet.fitted_frac(runs("backward"), "tokens") == pytest.approx(method.tokens_frac, rel=0.05)
    exact = [(size, tokens, float(quartet.loss(size, tokens, 0.7, 1.0))) for size, tokens, _ in runs("both wide")]
    assert quartet.fitted_frac(exact, "parameters") == pytest.approx(0.7, rel=1e-6)


def test_a_step_speeds_up_by_the_harmonic_mean_of_its_passes():
    assert [quartet.speedups(choice, 2.0) for choice in quartet.CHOICES] == [
        (1.0, 1.0),
        (2.0, pytest.approx(1.2)),
        (1.0, pytest.approx(1.5)),
        (2.0, pytest.approx(2.0)),
    ]


@pytest.mark.parametrize("is_resized", [True, False])
def test_fp4_that_is_no_faster_never_wins(is_resized):
    sizes, ratios = np.logspace(7, 12, 12)[:, None], np.logspace(0, 4, 20)
    method = quartet.known_method()
    assert (quartet.best_choice(sizes, sizes * ratios, 1.0, method, is_resized=is_resized) == 0).all()
    low, _ = quartet.least_tokens(1e9, 1.0, method, is_resized=is_resized)
    assert np.isnan(low)


def test_lossless_fp4_always_wins():
    lossless = quartet.Method(parameters_frac=1.0, tokens_frac=1.0)
    best = quartet.best_choice(np.logspace(7, 12, 12)[:, None], np.logspace(9, 14, 9), 2.0, lossless, is_resized=False)
    assert (best == len(quartet.CHOICES) - 1).all()


def test_a_larger_model_for_the_same_time_pays_where_data_abounds():
    method = quartet.known_method()
    few, many = (int(quartet.best_choice(1e9, 1e9 * r, 2.0, method, is_resized=True)) for r in (2.0, 500.0))
    assert str(quartet.CHOICES[few]) != str(quartet.CHOICES[many]) == "fp4 forward, fp4 backward"
    low, high = quartet.least_tokens(1e9, 2.0, method, is_resized=True)
    before, after = (
        [quartet.loss_at_equal_cost(quartet.CHOICES[i], 1e9, tokens, 2.0, method, is_resized=True) for i in (0, 3)]
        for tokens in (0.9 * low, 1.1 * low)
    )
    assert before[0] < before[1]
    assert after[0] > after[1]
    assert high > low


def test_faster_fp4_wins_earlier():
    method = quartet.known_method()
    starts = [quartet.least_tokens(1e9, ratio, method, is_resized=True)[0] for ratio in (1.8, 2.0, 3.0)]
    assert starts == sorted(starts, reverse=True)

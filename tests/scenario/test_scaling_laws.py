"""``orrery scaling`` with laws of round numbers: what is asked for, what is taken, and runs of the user's own."""

import pytest

from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog.devices import get_device
from orrery.numerics.laws import quartet
from orrery.scenario.scaling import BUDGETS_FLOPS, MAP_PARAMETERS, MAP_TOKENS_PER_PARAMETER, scaling
from orrery.scenario.scaling_runs import Fitted, fitted_shares, read_runs

ROUND = "n=1e5,alpha=1,d=1e6,beta=1,epsilon=1,gamma=100,delta=1,nu=1,num_flops_per_bit=0.375"
"""Loss = 1e5 / N + 1e6 / D + 1 + D / N x log2(B) / (100 (E + 1/2) (M + 1/2)): all exponents are one."""


def test_a_law_of_round_numbers():
    """At N = 1e5 and D = 1e6 three terms are one each; D / N = 10 and a block of 128, 7, over 100 x 4.5 x 3.5."""
    found = scaling(parameters=1e5, tokens=1e6, coefficients=ROUND)
    run = found.run
    assert (run.exponent_bits, run.mantissa_bits, run.block_elements, run.bits) == (4, 3, 128, 8)
    assert run.lossless == pytest.approx(3.0)
    assert run.loss == pytest.approx(3.0 + 70 / 1575)
    assert run.compute_flops == pytest.approx(0.375 * 8 * 1e11)
    assert found.notes == ("exponent_bits: 4 (default)", "mantissa_bits: 3 (default)", "block: 128 (default)")
    # of seven bits beside the sign three and four make the largest product; sixteen bits are split 7 and 8
    splits = {split.bits: split.split for split in found.splits}
    assert (splits[3], splits[8], splits[16]) == ((1, 1), (3, 4), (7, 8))
    assert all(split.num_tokens == 1e6 for split in found.splits)
    assert found.budget.compute_flops == pytest.approx(run.compute_flops, rel=0.01)
    assert [budget.compute_flops for budget in found.budgets] == pytest.approx(BUDGETS_FLOPS, rel=0.01)
    assert (BUDGETS_FLOPS[0], BUDGETS_FLOPS[-1], len(BUDGETS_FLOPS)) == (1e19, 1e31, 13)
    other = scaling(parameters=1e5, tokens=1e6, coefficients=ROUND, block=4, exponent_bits=1, mantissa_bits=0)
    assert other.run.loss == pytest.approx(3.0 + 20 / (100 * 1.5 * 0.5))
    assert other.notes == ()
    assert scaling(coefficients=ROUND, compute_flops=1e25).budget.compute_flops == pytest.approx(1e25, rel=0.01)


def test_coefficients_of_ones_own_are_told_from_the_papers():
    found = scaling(coefficients="epsilon=1, n=2")
    cited = {one["name"]: one for one in found.to_json()["coefficients"]}
    assert (cited["epsilon"]["value"], cited["epsilon"]["source"]) == (1.0, "your own")
    assert cited["alpha"]["source"] != "your own"
    assert "the other 7 constants of the law: as recalled of the paper" in "; ".join(found.notes)
    assert found.notes[:2] == ("parameters: 1e+09 (default)", "tokens: 1e+11 (default)")
    assert scaling().notes[-1].startswith("constants of the law: as recalled")
    assert found.run.loss - scaling(coefficients="epsilon=2, n=2").run.loss == pytest.approx(-1.0)


@pytest.mark.parametrize("text", ["n=0", "n=-1", "n=inf", "n=much", "n=1,n=2"])
def test_coefficients_are_numbers_above_0_each_once(text):
    with pytest.raises(ScenarioError, match="write n once, as n=NUMBER above 0"):
        scaling(coefficients=text)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"law": "quartett"}, "write 'quartet'"),
        ({"law": "quartet", "block": 32}, "block: the law quartet does not ask for it"),
        ({"fp4_ratio": 2}, "fp4_ratio: the law fp-quantisation does not ask for it"),
        ({"law": "quartet", "device": "a100-sxm-80gb"}, "states no peak rate for fp4"),
    ],
)
def test_questions_that_a_law_does_not_answer(settings, words):
    with pytest.raises(ScenarioError, match=words):
        scaling(**settings)
    with pytest.raises(UnknownName, match="coefficient of the law"):
        scaling(coefficients="zeta=1")


def test_rates_of_four_bits_over_eight():
    """Twice, where nobody says; or of the dense peaks that a device states."""
    assert scaling(law="quartet").trials[0].fp4_ratio == 2.0
    assert scaling(law="quartet", fp4_ratio=1.5).trials[0].fp4_ratio == 1.5
    rates = get_device("b200").dense_flops_per_s
    four = max(rates[name] for name in ("nvfp4", "fp4") if name in rates)
    assert scaling(law="quartet", device="b200").trials[0].fp4_ratio == pytest.approx(four / rates["fp8"])


def test_a_map_of_widths():
    """Three and a half decades of tokens a parameter in 29 steps, four and a half of sizes in 10."""
    assert (MAP_PARAMETERS[0], MAP_PARAMETERS[-1]) == (1e8, 3.2e12)
    assert (MAP_TOKENS_PER_PARAMETER[0], MAP_TOKENS_PER_PARAMETER[-1]) == (3.2, 1e4)
    found = scaling(law="quartet", parameters=1e8, tokens=1e8 * MAP_TOKENS_PER_PARAMETER[12])
    assert (len(found.choices), {len(row) for row in found.choices}) == (10, {29})
    assert found.best.loss == min(trial.loss for trial in found.trials)
    assert quartet.CHOICES[found.choices[0][12]] == found.best.choice
    same = scaling(law="quartet", same_size=True)
    assert not same.trials[0].is_resized
    assert found.trials[0].is_resized


def table(tmp_path, *rows, header="parameters,tokens,loss,fp4"):
    path = tmp_path / "runs.csv"
    path.write_text("\n".join((header, *rows)) + "\n")
    return path


def test_shares_that_runs_say(tmp_path):
    """Runs that the law itself made with 0.6 of their parameters, or 0.8 of their tokens, give those back."""
    forward = [(s, t, float(quartet.loss(s, t, 0.6, 1.0)), "forward") for s, t in ((1e8, 1e10), (2e8, 3e9))]
    backward = [(1e8, 1e10, float(quartet.loss(1e8, 1e10, 1.0, 0.8)), "backward")]
    path = table(tmp_path, *(",".join(map(str, row)) for row in forward + backward))
    found = fitted_shares(str(path))
    assert found["parameters_frac"].share == pytest.approx(0.6, rel=1e-3)
    assert found["tokens_frac"].share == pytest.approx(0.8, rel=1e-3)
    assert (found["parameters_frac"].num_runs, found["tokens_frac"].num_runs) == (2, 1)
    assert max(one.worst_frac for one in found.values()) < 1e-4
    answer = scaling(law="quartet", runs=str(path))
    assert answer.trials[0].method.parameters_frac == pytest.approx(0.6, rel=1e-3)
    assert any(note.startswith("parameters_frac: 0.6 (fitted to 2 of the runs") for note in answer.notes)
    with pytest.raises(ScenarioError, match="parameters_frac: the runs say it, too"):
        scaling(law="quartet", runs=str(path), parameters_frac=0.5)
    only = table(tmp_path, ",".join(map(str, backward[0])))
    assert fitted_shares(str(only)).keys() == {"tokens_frac"}


@pytest.mark.parametrize(("share", "is_at_an_end"), [(0.01, True), (0.0102, False), (1.99, False), (2.0, True)])
def test_shares_at_an_end_explain_nothing(share, is_at_an_end):
    assert Fitted(share=share, num_runs=1, worst_frac=0.1).is_at_an_end == is_at_an_end


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((), "lists no run"),
        (("1,2,3,both",), "row 2: fp4: got 'both'"),
        (("1,2,3,forward", "1,0,3,forward"), "row 3: tokens: got '0'; write a number above 0"),
        (("1,2,inf,forward",), "row 2: loss: got 'inf'"),
        (("1,2,low,forward",), "row 2: loss: got 'low'"),
    ],
)
def test_runs_that_make_no_sense(tmp_path, rows, words):
    with pytest.raises(ScenarioError, match=words):
        read_runs(table(tmp_path, *rows))
    with pytest.raises(ScenarioError, match="columns are size, loss"):
        read_runs(table(tmp_path, "1,2", header="size,loss"))

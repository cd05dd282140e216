"""The parts of a comparison: causes, residuals and their covariance, and how evidence is weighed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orrery.calibrate.compare import causes
from orrery.calibrate.compare.cells import Cell, covariance, kind_of, towards_slower
from orrery.calibrate.compare.fit import Fitted
from orrery.calibrate.compare.likelihood import chance_of_nothing, scores, shares
from orrery.calibrate.compare.problem import Problem
from orrery.calibrate.compare.read import read_measured
from orrery.calibrate.compare.registry import known_causes
from orrery.calibrate.compare.run import predict
from orrery.evidence.metrics import METRICS
from orrery.evidence.tables import Table

RUN = {
    "kind": "serving",
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "num_devices": "4",
    "tp": "4",
    "mode": "static",
    "batch_size": "8",
    "input_tokens": "512",
    "output_tokens": "64",
    "weights_format": "fp8",
    "latency_s": "1",
}
JOB = {
    "kind": "training",
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "num_devices": "16",
    "devices_per_node": "8",
    "tp": "2",
    "dp": "8",
    "micro_batch": "1",
    "global_batch": "32",
    "seq_len": "4096",
    "precision": "fp8",
    "recompute": "none",
    "step_time_s": "1",
}


def runs():
    tables = [Table("t", {k: [v] for k, v in row.items()}) for row in (RUN, JOB)]
    return read_measured(tables).runs


@pytest.mark.parametrize("cause", known_causes(), ids=lambda c: c.name)
def test_every_cause_is_a_file_and_says_what_it_must(cause):
    assert (Path(causes.__path__[0]) / f"{cause.name.replace('-', '_')}.py").is_file()
    assert cause.checks
    assert all(text and not text.endswith(" ") for text in (cause.title, cause.shows, cause.hides, *cause.checks))


@pytest.mark.parametrize("cause", known_causes(), ids=lambda c: c.name)
def test_a_fault_makes_no_run_faster_and_a_worse_one_none_faster_still(cause):
    """Ladders go from mild to severe; where a cause cannot show it leaves the run alone. Of batch limits the
    smaller may win a percent: prompts share fewer steps, and each such step is launched kernel by kernel."""
    slack = 1e-2 if cause.name == "batch-limit" else 1e-3
    for run, metric in zip(runs(), ("latency_s", "step_time_s"), strict=True):
        times = [predict(run, [metric])[metric].value]
        for severity in cause.ladder([run]):
            if (changed := cause.change(run, severity)) is None:
                continue
            assert cause.describe(run, severity)
            if isinstance(found := predict(changed, [metric]), dict):
                times.append(found[metric].value)
        milder = np.maximum.accumulate(times) if not cause.is_stepwise else np.full(len(times), times[0])
        assert np.all(np.array(times) >= (1.0 - slack) * milder), times


def cell(run=0, metric="ttft_s", measured=1.0, predicted=1.0, deviation=0.2, system="a"):
    return Cell(
        run=run,
        system=system,
        metric=metric,
        kind=kind_of(metric),
        measured=measured,
        predicted=predicted,
        deviation_ratio=deviation,
    )


def test_slower_is_above_zero_for_times_and_rates_alike():
    assert cell(metric="tpot_s", measured=2.0).slower_ratio == pytest.approx(np.log(2))
    assert cell(metric="output_tokens_per_s", measured=0.5).slower_ratio == pytest.approx(np.log(2))
    assert towards_slower("output_tokens_per_s_p50", 2.0) == pytest.approx(-np.log(2))
    speeds = {m for kind in ("serving", "training") for m in METRICS[kind]}
    assert not {m for m in speeds if not kind_of(m)}


def test_residuals_of_one_deployment_move_together_and_others_apart():
    cells = [cell(), cell(run=1), cell(run=1, metric="tpot_s"), cell(run=2, system="b"), cell(run=1, metric="power_w")]
    found = covariance(cells)
    assert np.allclose(found, found.T)
    assert np.linalg.eigvalsh(found).min() > 0
    assert found[0, 1] > found[0, 2] > found[0, 3] == 0.0
    assert found[1, 4] == 0.0
    assert found[0, 0] == pytest.approx(0.2**2 + 0.03**2)


def problem(residual):
    cells = tuple(cell(run=i, system=str(i)) for i in range(len(residual)))
    return Problem(runs=(), cells=cells, told_ratio=np.zeros(len(residual)), residual_ratio=np.array(residual))


def fitted(of, effect, cause=0):
    effect = np.array(effect)
    return Fitted(cause=known_causes()[cause], severity=1.0, effect_ratio=effect, misfit_ratio=of.misfit_ratio(effect))


def test_misfit_of_independent_numbers_is_that_of_students_law():
    """Against SciPy's own law, whose 80 % ends are laid where the normal ones are."""
    from scipy.stats import t

    deviation = np.hypot(0.2, 0.03)
    scaled = np.array([0.4, 0.1]) / deviation * t.ppf(0.9, 4) / 1.2816
    expected = -2.0 * (t.logpdf(scaled, 4) - t.logpdf(0.0, 4)).sum()
    assert problem([0.4, 0.1]).misfit_ratio() == pytest.approx(expected, rel=1e-3)


def test_what_a_healthy_prediction_may_miss_is_the_mean_and_three_deviations_of_that_law():
    from scipy.stats import t

    drawn = 5.0 * np.log1p(t.rvs(4, size=400_000, random_state=0) ** 2 / 4.0)
    assert problem([0.0] * 9).expected_misfit_ratio == pytest.approx(9 * drawn.mean() + 3 * 3 * drawn.std(), rel=0.02)


def test_a_perfect_fit_of_a_large_deviation_leaves_no_doubt_and_none_of_a_small_one_does():
    large, small = problem([1.0, 1.2, 0.1, 0.9]), problem([0.1, 0.12, 0.01, 0.09])
    assert chance_of_nothing(large, [fitted(large, large.residual_ratio)]) < 1e-6
    assert chance_of_nothing(small, [fitted(small, small.residual_ratio)]) > 0.5
    assert chance_of_nothing(large, []) == 1.0


def test_the_better_fit_has_the_larger_share_and_equal_fits_share_alike():
    of = problem([1.0, 1.2, 0.1, 0.9])
    good, bad = fitted(of, of.residual_ratio), fitted(of, of.residual_ratio * 0.5, 1)
    share = shares(of, [good, bad, replace(good)])
    assert share[0] == pytest.approx(share[2])
    assert share[1] < 0.01
    assert sum(share) == pytest.approx(1.0)
    assert scores(of, [good])[0] == pytest.approx(of.misfit_ratio() - np.log(4))

"""Runs with neighbours: what counters show, that kinds are held out, and what networks read from them."""

import numpy as np
import pytest

from orrery.predictors.learn.attention import APART, attend, start_attention
from orrery.predictors.learn.quantiles import QUANTILES, ordered, pinball
from orrery.predictors.studies import noisy_neighbours as study
from orrery.predictors.tenants.interference import KINDS, NUM_METRICS, UNSEEN, mixes, runs


def test_runs_are_the_same_for_the_same_seed() -> None:
    a, b = (runs(study.host(), study.SEEN, num_runs=5, num_seconds=6, seed=1) for _ in range(2))
    np.testing.assert_array_equal(a.metrics, b.metrics)
    assert a.metrics.shape == (5, 6, NUM_METRICS)
    assert np.all(np.isfinite(a.metrics))


def test_a_vm_by_itself_loses_nothing_and_others_lose_more_the_more_there_are() -> None:
    found = runs(study.host(), study.SEEN, num_runs=300, num_seconds=8, seed=2)
    num = found.is_present[..., 1:].any(axis=1).sum(axis=1)
    lost = [1.0 - found.speed_frac[num == n].mean() for n in range(5)]
    assert lost[0] == pytest.approx(0.0, abs=1e-9)
    assert lost[0] < lost[1] < lost[2] < lost[4]
    assert np.all((found.speed_frac > 0.0) & (found.speed_frac <= 1.0 + 1e-9))


def test_kinds_of_programs_are_held_out() -> None:
    assert set(study.SEEN) | set(UNSEEN) == set(KINDS)
    assert not set(study.SEEN) & set(UNSEEN)
    assert len(UNSEEN) >= 4


def test_neighbours_that_stream_cost_more_than_neighbours_that_compute() -> None:
    def lost(*beside: str) -> float:
        drawn = mixes(study.host(), ("database", *beside), num_runs=40, num_seconds=4, seed=0)
        return float(np.median(1.0 - drawn.speed_frac))

    assert lost() == pytest.approx(0.0, abs=1e-9)
    assert lost("batch", "batch") < lost("stream", "stream")


def test_quantiles_are_in_order_and_the_loss_is_least_at_the_true_ones() -> None:
    pytest.importorskip("autograd")
    rng = np.random.default_rng(0)
    assert np.all(np.diff(ordered(rng.standard_normal((50, 3))), axis=1) > 0.0)
    y = rng.standard_normal(20_000)
    true = np.tile(np.quantile(y, QUANTILES), (len(y), 1))
    best = float(pinball(true, y))
    for i in range(3):
        for by in (-0.2, 0.2):
            assert float(pinball(true + by * np.eye(3)[i], y)) > best


def test_attention_is_blind_across_a_mask_and_indifferent_to_order() -> None:
    pytest.importorskip("autograd")
    rng = np.random.default_rng(0)
    x, parameters = rng.standard_normal((2, 4, 3)), start_attention(rng, "a", 3)
    group = np.array([0, 0, 1, 1])
    mask = np.where(np.equal.outer(group, group), 0.0, APART)
    changed = x.copy()
    changed[:, 2:] += 1.0
    np.testing.assert_allclose(attend(parameters, "a", x, mask)[:, :2], attend(parameters, "a", changed, mask)[:, :2])
    assert not np.allclose(attend(parameters, "a", x)[:, :2], attend(parameters, "a", changed)[:, :2])
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(attend(parameters, "a", x)[:, order], attend(parameters, "a", x[:, order]))


@pytest.mark.slow
def test_networks_learn_more_than_the_mean_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("autograd")
    monkeypatch.setattr(study, "NUM_RUNS", 400)
    monkeypatch.setattr(study, "NUM_HELD_RUNS", 150)
    ticks: list[int] = []
    rows = study.EXPERIMENT(steps=100, progress=lambda done, total: ticks.append(total - done))
    errors = {str(row["predictor"]): float(row["error_frac"]) for row in rows if "predictor" in row}
    assert set(errors) == {"dual-branch-attention", "gated-recurrence", "counter-line", "median of all runs"}
    assert max(errors["dual-branch-attention"], errors["gated-recurrence"]) < errors["median of all runs"]
    assert errors["counter-line"] < 0.7 * errors["median of all runs"]
    assert ticks[-1] == 0
    for row in rows[4:]:
        low, middle, high = (float(row[f"predicted_p{q}_frac"]) for q in (10, 50, 90))
        assert low < middle < high
        assert 0.0 <= float(row["degradation_frac"]) < 1.0

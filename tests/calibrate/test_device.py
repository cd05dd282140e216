"""Ten chosen measurements of a machine that is played: what is learned, and how sure it is."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from orrery.base.posterior import Posterior, most_telling, settle
from orrery.calibrate.device.pool import pool_of
from orrery.calibrate.device.prior import with_prior
from orrery.calibrate.device.search import Search
from orrery.calibrate.device.unknowns import nature_of, unknowns_of
from orrery.calibrate.measure.clock import Timed
from orrery.catalog.devices import get_device
from orrery.hardware.device import Device


def played(search: Search, seed: int, noise: float = 0.03):
    """A machine whose constants are drawn from the prior, and how long it takes over any work."""
    rng = np.random.default_rng(seed)
    truth = rng.multivariate_normal(search.unknowns.prior.mean, search.unknowns.prior.covariance)
    fractions = [name.endswith("_frac") for _, name in search.unknowns.names]
    truth = np.where(fractions, np.minimum(truth, 0.0), truth)

    def time(work) -> Timed:
        time_s, _ = search.unknowns.predict([work], truth)
        return Timed(
            time_s=float(time_s[0] * np.exp(noise * rng.normal())),
            fastest_s=0.0,
            spread_frac=noise,
            num_samples=7,
            num_outliers=0,
            first_s=0.0,
        )

    return truth, time


class PlayedGpu:
    """A backend by name only: what is believed of a GPU, before any of its kernels is run."""

    name, device_kind = "pytorch", "gpu"

    def formats(self):
        return ("bf16", "fp8")

    def facts(self):
        return {}


@pytest.mark.parametrize("name", ["h100-sxm"])
def test_ten_measurements_of_a_gpu_bring_its_predictions_nearer(name: str) -> None:
    backend = PlayedGpu()
    device = with_prior(get_device(name), backend, backend.formats())
    pool = pool_of(device, "pytorch", backend.formats())
    assert {work.key[0] for work in pool} >= {"gemm", "attention_prefill", "attention_decode", "elementwise_norm"}
    search = Search(unknowns=unknowns_of(device, [work.key for work in pool]), pool=pool)
    truth, time = played(search, 3)
    before = error(search, truth)
    for _ in range(10):
        work = search.next()
        assert work is not None
        search.add(work, time(work))
    assert error(search, truth) < 0.7 * before


def error(search: Search, truth: np.ndarray) -> float:
    """Mean |log error| over the pool, weighted as the search weights it."""
    known, _ = search.unknowns.predict(search.pool, truth)
    message, _ = search.unknowns.predict(search.pool, search.believed.mean)
    weights = [work.weight_frac for work in search.pool]
    return float(np.average(np.abs(np.log(message / known)), weights=weights))


def test_ten_measurements_halve_the_error_and_beat_ten_drawn_ones(box: Device, searching) -> None:
    chosen, drawn, before = [], [], []
    for seed in range(3):
        search = searching(box)
        truth, time = played(search, seed)
        before.append(error(search, truth))
        for _ in range(10):
            work = search.next()
            assert work is not None
            search.add(work, time(work))
        chosen.append(error(search, truth))
        other = searching(box)
        for i in np.random.default_rng(seed).permutation(len(other.pool))[:10]:
            other.add(other.pool[i], time(other.pool[i]))
        drawn.append(error(other, truth))
    assert np.mean(chosen) < 0.5 * np.mean(before)
    assert np.mean(chosen) < np.mean(drawn)


def test_doubt_falls_with_every_measurement_and_never_below_the_law_s_own_error(box: Device, searching) -> None:
    search = searching(box)
    _, time = played(search, 7)
    doubts = [search.uncertainty()]
    for _ in range(6):
        work = search.next()
        assert work is not None
        search.add(work, time(work))
        doubts.append(search.uncertainty())
    assert all(after < before for before, after in pairwise(doubts))
    law = [search.misfit(work.key) for work in search.pool]
    assert doubts[-1] > np.sqrt(np.mean(np.square(law)))


def test_intervals_of_what_was_not_measured_hold_about_as_often_as_they_say(box: Device, searching) -> None:
    inside = []
    for seed in range(3):
        search = searching(box)
        truth, time = played(search, seed)
        for _ in range(10):
            work = search.next()
            assert work is not None
            search.add(work, time(work))
        own = search.calibrations(1.0, "")
        known, _ = search.unknowns.predict(search.pool, truth)
        message, _ = search.unknowns.predict(search.pool, search.believed.mean)
        inside += [
            own[w.key].spread.low_80_ratio <= k / s <= own[w.key].spread.high_80_ratio
            for w, k, s in zip(search.pool, known, message, strict=True)
        ]
    assert 0.75 < np.mean(inside) <= 1.0


def test_a_measurement_in_a_restless_moment_counts_less(box: Device, searching) -> None:
    quiet, restless = searching(box), searching(box)
    work = quiet.next()
    assert work is not None
    other = next(w for w in restless.pool if w.name == work.name)
    truth, _ = quiet.unknowns.predict([work], quiet.believed.mean)
    slow = Timed(
        time_s=2 * float(truth[0]), fastest_s=0.0, spread_frac=0.01, num_samples=7, num_outliers=0, first_s=0.0
    )
    quiet.add(work, slow, 1.0)
    restless.add(other, slow, 2.0)
    moved = [s.unknowns.predict([work], s.believed.mean)[0][0] / truth[0] for s in (quiet, restless)]
    assert moved[0] > moved[1] > 1.0


def test_what_is_measured_is_not_chosen_again_and_the_pool_ends(box: Device, searching) -> None:
    search = searching(box)
    search.pool = search.pool[:3]
    _, time = played(search, 0)
    seen = []
    while (work := search.next()) is not None:
        search.add(work, time(work))
        seen.append(work)
    assert len(seen) == 3
    assert len({id(work) for work in seen}) == 3


def test_unrest_of_the_machine_widens_both_ends(box: Device, searching) -> None:
    search = searching(box)
    narrow, wide = search.calibrations(1.0, "a"), search.calibrations(1.5, "b")
    for key, calibration in narrow.items():
        assert wide[key].spread.high_80_ratio == pytest.approx(1.5 * calibration.spread.high_80_ratio)
        assert wide[key].spread.low_95_ratio == pytest.approx(calibration.spread.low_95_ratio / 1.5)


def test_slopes_are_derivatives(box: Device, searching) -> None:
    search = searching(box)
    works, x = search.pool[:: len(search.pool) // 12], search.believed.mean
    times, slopes = search.unknowns.predict(works, x)
    for i in range(0, len(x), 7):
        stepped = x.copy()
        stepped[i] -= 1e-5
        less, _ = search.unknowns.predict(works, stepped)
        assert np.log(times / less) / 1e-5 == pytest.approx(slopes[:, i], abs=2e-3)


def test_constants_share_a_factor_by_their_nature() -> None:
    assert nature_of("call_s") == nature_of("bulk_step_s") == "calls"
    assert nature_of("pack_memory_ratio") == nature_of("bandwidth_frac") == "memory"
    assert nature_of("product_frac") == nature_of("peak_frac") == "arithmetic"
    assert nature_of("read_cache_ratio") == "caches"


def test_settling_a_straight_line_is_the_textbook_posterior() -> None:
    slopes, noise = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.full(3, 0.5)
    seen, prior = np.array([0.1, 0.4, 0.2]), Posterior(mean=np.zeros(2), covariance=np.diag([4.0, 1.0]))
    found = settle(lambda x: (slopes @ x - seen, slopes), prior, noise)
    precision = slopes.T @ slopes / 0.25 + np.diag([0.25, 1.0])
    assert found.covariance == pytest.approx(np.linalg.inv(precision))
    assert found.mean == pytest.approx(np.linalg.solve(precision, slopes.T @ seen / 0.25), abs=1e-6)


def test_the_most_telling_measurement_is_the_one_that_lowers_the_variance_most() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    prior = Posterior(mean=np.zeros(4), covariance=root @ root.T)
    candidates, targets, noise = rng.normal(size=(6, 4)), rng.normal(size=(9, 4)), rng.uniform(0.1, 1.0, 6)
    best, gain = most_telling(prior, candidates, targets, noise)
    after = []
    for c, n in zip(candidates, noise, strict=True):
        left = np.linalg.inv(np.linalg.inv(prior.covariance) + np.outer(c, c) / n**2)
        after.append(np.mean(np.einsum("ij,jk,ik->i", targets, left, targets)))
    assert best == int(np.argmin(after))
    assert gain == pytest.approx(np.mean(prior.variance_of(targets)) - min(after))


def test_a_machine_that_is_faster_than_any_before_stays_below_its_peak(box: Device, searching) -> None:
    search = searching(box)
    fast = replace(search.believed, mean=search.believed.mean + 2.0)
    shares = [
        value
        for calibration in search.unknowns.calibrations(fast.mean).values()
        for name, value in calibration.constants.items()
        if name.endswith("_frac")
    ]
    assert shares
    assert max(shares) <= 1.0


def test_a_search_that_begins_nearby_ends_at_the_same_constants() -> None:
    """log x is measured three times beside a prior of one sigma: the least squares are solved by hand."""
    prior, noise = Posterior(mean=np.zeros(1), covariance=np.eye(1)), np.full(3, 0.5)
    measured = np.array([0.8, 1.0, 1.2])

    def errors(x):
        return x[0] - measured, np.ones((3, 1))

    by_hand = (measured.sum() / 0.25) / (3 / 0.25 + 1)
    for start in (None, np.array([5.0])):
        found = settle(errors, prior, noise, start)
        assert found.mean[0] == pytest.approx(by_hand)
        assert found.covariance[0, 0] == pytest.approx(1 / 13)

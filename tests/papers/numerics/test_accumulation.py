"""Fingerprints of accumulation: orders and widths told apart by the last bits."""

import numpy as np
import pytest

from orrery.numerics.arithmetic.accumulation import PLATFORMS, product
from orrery_papers.hspi import fingerprint


def operands(seed, m=16, n=16, k=128):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(n, k)).astype(np.float16)


def points(seeds, is_white):
    found = {name: [] for name in PLATFORMS}
    for seed in seeds:
        x, w = operands(seed, m=24, n=24, k=128)
        exact = x.astype(float) @ w.astype(float).T
        for name, platform in PLATFORMS.items():
            y = product(x, w, platform)
            shares = fingerprint.errors(y, exact) if is_white else fingerprint.low_bits(y)
            found[name].append(shares)
    return {name: np.array(p) for name, p in found.items()}


@pytest.mark.parametrize(("is_white", "least"), [(True, 0.8), (False, 1.5 / 6)])
def test_a_small_classifier_names_the_platform_from_other_models_than_it_learnt_on(is_white, least):
    classifier = fingerprint.train(points(range(100, 108), is_white))
    assert fingerprint.accuracy_frac(classifier, points(range(200, 208), is_white)) > least


def test_what_shows_nothing_tells_nothing():
    noise = np.random.default_rng(0)
    train, test = ({n: noise.random((20, 5)) for n in PLATFORMS} for _ in range(2))
    assert fingerprint.accuracy_frac(fingerprint.train(train), test) < 0.4


def test_shares_are_what_they_say():
    assert fingerprint.low_bits(np.array([1.0, np.nextafter(np.float32(1), np.float32(2))], np.float32))[0] == 0.5
    exact = np.array([1.0, -1.0, 3.0])
    found = fingerprint.errors(np.array([1.0, -1.0, 3.0], np.float32), exact)
    assert found[5] == 1.0
    assert found.sum() == pytest.approx(1.0)

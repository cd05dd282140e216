"""The cheapest mix: exact on small cases, never dearer than one type, and refused where nothing serves."""

import numpy as np
import pytest

from orrery.fleet.mix import ReplicaRates, alone, buckets, cheapest, pace

pytest.importorskip("highspy")


def test_a_small_device_takes_what_is_left_of_a_large_one():
    loads = np.array([[2.0, 0.5], [8.0, 0.6]])  # replicas that each bucket keeps busy: small type, large type
    mix = cheapest(loads, np.array([1.0, 3.0]))
    assert mix is not None
    assert mix.num_replicas.tolist() == [1, 1]
    assert mix.usd_per_s == 4.0
    assert alone(loads, np.array([1.0, 3.0])).tolist() == [10.0, 6.0]
    assert mix.dealt_frac.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert ((mix.dealt_frac * loads).sum(axis=0) <= mix.num_replicas + 1e-6).all()


def test_a_bucket_goes_to_the_type_that_can_serve_it():
    loads = np.array([[0.2, 0.1], [np.inf, 0.4]])
    mix = cheapest(loads, np.array([1.0, 5.0]))
    assert mix is not None
    assert mix.num_replicas.tolist() == [0, 1]
    assert np.isinf(alone(loads, np.array([1.0, 5.0]))[0])


def test_nothing_serves_a_bucket():
    assert cheapest(np.array([[np.inf, np.inf]]), np.array([1.0, 2.0])) is None


@pytest.mark.parametrize("seed", range(4))
def test_a_mix_is_never_dearer_than_the_best_single_type(seed):
    draw = np.random.default_rng(seed)
    loads, rent = draw.uniform(0.1, 4.0, (5, 3)), draw.uniform(1.0, 8.0, 3)
    mix = cheapest(loads, rent)
    assert mix is not None
    assert mix.usd_per_s <= alone(loads, rent).min() * (1.0 + 1e-3)


def test_requests_fall_into_buckets_by_both_lengths():
    found = buckets(np.array([10, 12, 500]), np.array([300, 20, 20]), (100.0,))
    assert [(b.input_tokens, b.output_tokens) for b in found] == [(12, 20), (10, 300), (500, 20)]
    assert sum(b.share_frac for b in found) == pytest.approx(1.0)


def test_a_deadline_takes_the_highest_rate_that_keeps_it():
    found = ReplicaRates(requests_per_s=np.array([1.0, 3.0, 5.0]), tpot_s=np.array([0.01, 0.03, 0.2]))
    assert found.highest_per_s(0.05) == 3.0
    assert found.highest_per_s(0.005) == 0.0


def test_a_larger_device_is_faster_and_a_model_may_not_fit(deploy):
    small, large = (deploy(model="llama-2-7b", device=d) for d in ("l4", "a100-sxm-80gb"))
    assert pace(large, 512, 128).highest_per_s(0.1) > 3 * pace(small, 512, 128).highest_per_s(0.1)
    whole = deploy(model="llama-2-70b", device="l4")
    assert pace(whole, 512, 128).highest_per_s(1.0) == 0.0

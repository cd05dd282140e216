"""Streaming weights beside a cache in the host's memory: bounds hold, and the closed form agrees with the passes."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.experts.host_cache import HostCached, finite_s, limit_tokens_per_s, phased_s, played

X = HostCached(
    weights_s=4.0,
    products_s=lambda tokens: 1e-3 * tokens,
    attention_s_per_tokens=1e-5,
    cache_tokens=100_000.0,
    input_tokens=100,
    output_tokens=32,
)


def test_a_pass_takes_the_longest_of_three():
    assert X.pass_s(100.0, 10.0, 1000.0) == 4.0
    assert X.pass_s(9000.0, 1000.0, 0.0) == pytest.approx(10.0)
    assert X.pass_s(0.0, 10.0, 1e6) == pytest.approx(10.0)


def test_no_run_beats_the_limit():
    for requests in (200, 5000):
        limit = limit_tokens_per_s(X)
        assert requests * 32 / played(X, np.full(requests, 100)) <= limit * 1.02
        assert requests * 32 / finite_s(X, requests) <= limit * 1.02


@pytest.mark.parametrize("requests", [3000, 8000])
@pytest.mark.parametrize("tokens", [(100, 32), (400, 128), (50, 8)])
@pytest.mark.parametrize("attention_s", [1e-5, 1e-3])
def test_the_closed_form_agrees_with_the_passes(requests, tokens, attention_s):
    x = replace(X, input_tokens=tokens[0], output_tokens=tokens[1], attention_s_per_tokens=attention_s)
    assert finite_s(x, requests) == pytest.approx(played(x, np.full(requests, tokens[0])), rel=0.06)


def test_more_memory_helps_until_the_device_is_busy():
    rates = [limit_tokens_per_s(replace(X, cache_tokens=c)) for c in (1e4, 1e5, 1e6, 1e7)]
    assert rates[1] == pytest.approx(10 * rates[0])
    assert rates[3] == pytest.approx(rates[2], rel=0.3)


def test_prompts_of_all_lengths_take_about_as_long_as_their_mean():
    drawn = np.clip(np.random.default_rng(0).lognormal(4.4, 0.6, 4000), 10, 400).astype(np.int64)
    x = replace(X, input_tokens=int(drawn.mean()))
    assert played(x, drawn) == pytest.approx(finite_s(x, 4000), rel=0.1)


def test_phases_and_padding_only_lose():
    assert phased_s(X, 5000, 100) > played(X, np.full(5000, 100))
    assert phased_s(X, 5000, 400) > phased_s(X, 5000, 100)


def test_a_cache_that_holds_no_request_is_refused():
    with pytest.raises(ScenarioError, match="more memory"):
        replace(X, cache_tokens=100.0)

"""The price of calls by hand: cache that tensor parallelism cuts, waves, and the longest way through a graph."""

from dataclasses import replace

import pytest

from orrery.execution.memory import Infeasible, memory_of
from orrery.reasoning.cost import call_cost, cost
from orrery.reasoning.graph import Call, Graph

MODEL = "meta-llama/Llama-3.1-8B"
EACH = 2 * 2 * 32 * 8 * 128
"""Bytes of cache a token takes: keys and values of 16 bits in 32 layers of 8 heads of 128."""

CALL = Call(name="a", count=4, context_tokens=512, distinct_tokens=512, fresh_tokens=512, output_tokens=64)


def test_the_cache_of_all_devices_is_that_of_one(deploy):
    for tp in (1, 2):
        found = cost(Graph(calls=(CALL,)), {"solver": deploy(MODEL, tp=tp)}).calls[0]
        assert found.kept_bytes == pytest.approx(EACH * (512 + 4 * 64))
        assert found.cache_read_bytes == pytest.approx(EACH * 256 * (512 + 32.5), rel=1e-3)
        assert (found.prefilled_tokens, found.num_waves) == (512, 1)
        assert found.flops > 2 * 7e9 * (512 + 256)
        assert found.bytes > found.cache_read_bytes


def test_a_question_takes_its_longest_way(deploy):
    calls = (
        CALL,
        replace(CALL, name="b", output_tokens=16),
        replace(CALL, name="c", after=("a", "b"), output_tokens=8),
        replace(CALL, name="early", is_online=False),
    )
    found = cost(Graph(calls=calls), {"solver": deploy(MODEL)})
    a, b, c, early = (call.time_s for call in found.calls)
    assert b < a
    assert found.time_s == pytest.approx(a + c)
    assert found.offline_s == early
    assert found.energy_j == pytest.approx(sum(call.energy_j for call in found.calls))
    assert found.peak_kept_bytes == max(call.kept_bytes for call in found.calls)
    assert found.cache_read_bytes == pytest.approx(sum(call.cache_read_bytes for call in found.calls))


def test_a_verifier_only_reads_and_a_solver_that_was_read_only_writes(deploy):
    deployment = deploy(MODEL)
    read = cost(Graph(calls=(replace(CALL, output_tokens=0),)), {"solver": deployment}).calls[0]
    written = cost(Graph(calls=(replace(CALL, fresh_tokens=0),)), {"solver": deployment}).calls[0]
    both = cost(Graph(calls=(CALL,)), {"solver": deployment}).calls[0]
    assert read.cache_read_bytes == 0
    assert written.prefilled_tokens == 0
    assert both.time_s == pytest.approx(read.time_s + written.time_s, rel=1e-6)
    apart = cost(Graph(calls=(CALL,)), {"solver": deployment}, shares_prefix=False).calls[0]
    assert apart.prefilled_tokens == 4 * 512
    assert apart.kept_bytes == pytest.approx(EACH * 4 * 576)


def test_half_a_cache_makes_two_waves_and_computes_half_the_context_again(deploy):
    deployment = deploy(MODEL)
    memory = memory_of(deployment)
    call = replace(CALL, count=8, distinct_tokens=4000, fresh_tokens=100, context_tokens=600)
    whole = EACH * (4000 + 8 * 64)
    for room, waves, again in ((1.0, 1, 0.0), (0.5, 2, 1950.0), (0.25, 4, 2925.0)):
        tight = replace(memory, kv_capacity_bytes=room * whole)
        found = call_cost(call, deployment, tight, shares_prefix=True)
        assert (found.num_waves, found.prefilled_tokens) == (waves, pytest.approx(100 + again))
    few = call_cost(call, deployment, replace(memory, max_num_seqs=3), shares_prefix=True)
    assert (few.num_waves, few.prefilled_tokens) == (3, 100)


def test_one_sequence_that_the_cache_cannot_hold(deploy):
    deployment = deploy(MODEL)
    most = memory_of(deployment).kv_capacity_tokens
    fits = replace(CALL, count=1, context_tokens=most - 64, distinct_tokens=most - 64)
    assert not isinstance(cost(Graph(calls=(fits,)), {"solver": deployment}), Infeasible)
    found = cost(Graph(calls=(replace(fits, context_tokens=most - 63),)), {"solver": deployment})
    assert isinstance(found, Infeasible)
    assert (found.need, found.have, found.unit) == (pytest.approx(most + 1), most, "tokens")

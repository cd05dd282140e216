"""The price of calls by hand: cache that tensor parallelism cuts, waves, and the longest way through a graph."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.execution.memory import Infeasible, memory_of
from orrery.reasoning import cost as costs
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


@pytest.fixture
def steps_of_calls(monkeypatch):
    """The rows of steps that a group of calls asks for, and how often each runs."""
    monkeypatch.setattr(costs, "steps_of", lambda *columns: np.array(columns))
    monkeypatch.setattr(costs, "tick", lambda deployment, steps: steps)

    def asked(call, *, pp=1, budget=8192.0, prefilled=512.0, waves=1):
        deployment = SimpleNamespace(layout=SimpleNamespace(pp=pp))
        return costs._steps(call, deployment, budget, prefilled, call.count / waves, waves)

    return asked


def test_steps_of_a_group_of_calls(steps_of_calls):
    """Four prompts of 128 new tokens in one step behind 512; 64 steps of four that write, at three contexts."""
    (prompts, tokens, ends, decodes, contexts), times = steps_of_calls(CALL)
    assert (prompts.tolist(), tokens.tolist(), ends.tolist()) == ([0, 0, 0, 4], [0, 0, 0, 128], [0, 0, 0, 512])
    assert decodes.tolist() == [4, 4, 4, 0]
    assert contexts[1] == 512 + 1 + 63 / 2
    assert contexts[0] + contexts[2] == pytest.approx(2 * contexts[1])
    assert times[:3].sum() == pytest.approx(64)
    assert times[3] == 1.0


def test_steps_of_prompts_that_are_cut_or_short(steps_of_calls):
    """In steps of 200 tokens: two prompts of 128 at once, 2.56 times. A prompt ends no sooner than it is long."""
    (prompts, tokens, ends, _, _), times = steps_of_calls(replace(CALL, context_tokens=100), budget=200.0)
    assert (prompts[3], tokens[3], ends[3], times[3]) == (2, 128, 128, 2.56)
    (prompts, tokens, _, decodes, _), times = steps_of_calls(CALL, waves=2, pp=2)
    assert (prompts[3], tokens[3], times[3]) == (2, 128, 2.0)  # 256 tokens in each of two waves
    assert decodes.tolist() == [1, 1, 1, 0]
    assert times[:3].sum() == pytest.approx(2 * 64)


def test_steps_of_calls_that_only_read_or_only_write(steps_of_calls):
    (_, _, _, decodes, _), times = steps_of_calls(replace(CALL, output_tokens=0))
    assert (decodes.tolist(), times[:3].tolist()) == ([0] * 4, [0] * 3)
    (prompts, tokens, ends, _, _), times = steps_of_calls(CALL, prefilled=0.0)
    assert (prompts.tolist(), tokens.tolist(), times[3]) == ([0] * 4, [0] * 4, 0.0)
    assert ends[3] == 512

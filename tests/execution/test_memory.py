"""Memory adds up, matches what engines logged, and says what would make a model fit."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.execution.memory import USABLE_FRAC, Infeasible, Memory, memory_of


def test_the_categories_fill_what_the_engine_may_use(deploy):
    memory = memory_of(deploy(tp=4))
    assert isinstance(memory, Memory)
    parts = memory.weights_bytes + memory.activation_bytes + memory.communication_bytes + memory.context_bytes
    assert parts + memory.kv_capacity_bytes == pytest.approx(memory.usable_bytes)
    assert memory.usable_bytes < memory.capacity_bytes


def test_a_share_of_all_and_a_share_of_what_is_free_differ(deploy):
    all_of_it, of_free = memory_of(deploy(tp=4)), memory_of(deploy(tp=4, engine="tensorrt-llm"))
    assert isinstance(all_of_it, Memory)
    assert isinstance(of_free, Memory)
    assert of_free.kv_capacity_bytes > all_of_it.kv_capacity_bytes


def test_what_does_not_fit_says_how_it_would(deploy):
    found = memory_of(deploy(tp=1))
    assert isinstance(found, Infeasible)
    assert found.need > found.have
    assert "4 devices" in found.smallest_change
    assert isinstance(memory_of(deploy(tp=4)), Memory), "the suggestion works"


@pytest.mark.parametrize("flag", ["--max-num-seqs", "--max-num-batched-tokens"])
def test_where_a_smaller_step_would_fit_it_says_which(deploy, flag):
    """The weights leave 1 GiB of the engine's share beside them, and the default step takes more."""
    if flag == "--max-num-seqs":
        base = replace(deploy(tp=4), max_num_seqs=4096, max_num_batched_tokens=2048)
    else:
        base = replace(deploy(tp=4), max_num_seqs=16, max_num_batched_tokens=1 << 18)
    memory = memory_of(replace(base, max_num_seqs=16, max_num_batched_tokens=512))
    assert isinstance(memory, Memory)
    taken = memory.weights_bytes + memory.activation_bytes + memory.communication_bytes + memory.context_bytes
    frac = (taken + 2**30) / (memory.capacity_bytes * USABLE_FRAC)
    found = memory_of(replace(base, memory_utilization_frac=frac))
    assert isinstance(found, Infeasible)
    asked = dict(zip(*[iter(found.smallest_change.split(" one ")[0].split()[1:])] * 2, strict=True))
    assert list(asked) == [flag]
    name, limit = flag.removeprefix("--").replace("-", "_"), int(asked[flag])
    tried = replace(base, memory_utilization_frac=frac)
    assert isinstance(memory_of(replace(tried, **{name: limit})), Memory)
    assert isinstance(memory_of(replace(tried, **{name: 2 * limit})), Infeasible), "and no smaller than it must be"


@settings(max_examples=30, deadline=None)
@given(tokens=st.integers(256, 65536), frac=st.floats(0.5, 0.98), tp=st.sampled_from([4, 8]))
def test_more_memory_for_the_engine_is_more_cache(deploy_any, tokens, frac, tp):
    base = replace(deploy_any(tp=tp), max_num_batched_tokens=tokens, memory_utilization_frac=frac)
    more = replace(base, memory_utilization_frac=min(0.99, frac + 0.05))
    found, better = memory_of(base), memory_of(more)
    if isinstance(found, Memory) and isinstance(better, Memory):
        assert better.kv_capacity_tokens >= found.kv_capacity_tokens
        assert found.kv_capacity_tokens % base.engine.block_tokens == 0

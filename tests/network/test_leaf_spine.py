"""Flows on a leaf-spine fabric: assigned as even as sprayed, whatever the sizes; a hash is worse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.network.leaf_spine import LeafFlows, assigned, hashed, parts_needed, sprayed


def shuffled(num_leaves, num_spines, num_hosts_per_leaf, random):
    """Every host sends to one other and receives from one; what stays below a leaf uses no spine."""
    leaves = np.repeat(np.arange(num_leaves), num_hosts_per_leaf)
    targets = random.permutation(leaves)
    away = leaves != targets
    return LeafFlows(num_leaves=num_leaves, num_spines=num_spines, sources=leaves[away], targets=targets[away])


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(1, 6), st.integers(1, 7), st.integers(0, 99))
def test_assigned_flows_reach_what_spraying_does(leaves, spines, hosts, seed):
    flows = shuffled(leaves, spines, hosts, np.random.default_rng(seed))
    if flows.sources.size:
        assert assigned(flows) == pytest.approx(sprayed(flows))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=25), st.integers(1, 5))
def test_so_they_do_for_any_pattern(pairs, spines):
    """No permutation is needed: leaves may send to one, and one may receive from all."""
    sources, targets = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    flows = LeafFlows(num_leaves=4, num_spines=spines, sources=sources, targets=targets)
    assert assigned(flows) == pytest.approx(sprayed(flows))
    assert hashed(flows, np.random.default_rng(0)) >= sprayed(flows)


def test_a_number_that_divides_needs_no_cutting():
    around = np.arange(8, dtype=np.int64).repeat(8)
    flows = LeafFlows(num_leaves=8, num_spines=4, sources=around, targets=(around + 1) % 8)
    assert (flows.most, parts_needed(flows), assigned(flows)) == (8, 1, 2.0)


def test_too_few_parts_leave_a_link_with_more():
    around = np.arange(8, dtype=np.int64).repeat(5)
    flows = LeafFlows(num_leaves=8, num_spines=4, sources=around, targets=(around + 1) % 8)
    assert parts_needed(flows) == 4
    assert [assigned(flows, n) for n in (1, 2, 3, 4, 9)] == pytest.approx([2.0, 1.5, 4 / 3, 1.25, 1.25])


def test_a_hash_collides_more_with_fewer_and_larger_flows():
    random = np.random.default_rng(0)
    few, many = (shuffled(16, 16, hosts, random) for hosts in (4, 256))
    assert hashed(few, random) / sprayed(few) > 1.5 * hashed(many, random) / sprayed(many) > 1.5

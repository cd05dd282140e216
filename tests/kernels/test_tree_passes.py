"""Work of a recurrent layer over a tree: by hand, and where one pass gains nothing."""

import pytest

import orrery
from orrery.base.errors import OutOfRange, ScenarioError
from orrery.kernels.recurrent.tree_passes import TreeLayer, by_branch, one_pass, state_each

LAYER = TreeLayer(num_heads=2, num_features=4, num_channels=3, widths=(3, 2))


def test_by_hand():
    """1 + 3 + 6 tokens, six branches of three; a state has 24 numbers of 4 bytes, a token 28 of 2."""
    assert (LAYER.num_tokens, LAYER.num_branches, LAYER.num_levels) == (10, 6, 3)
    assert LAYER.state_bytes == 96
    assert LAYER.token_bytes(10) == 560
    tree, states, branches = one_pass(LAYER), state_each(LAYER), by_branch(LAYER)
    assert tree.matrix_flops == 2 * (2 * 10 * 10 * (4 + 3) + 2 * 10 * 4 * 3)
    assert tree.vector_flops == 5 * 2 * 12 * 3  # along the accepted path
    assert tree.moved_bytes == 2 * 96 + 560
    assert (states.matrix_flops, states.vector_flops, states.moved_bytes) == (0, 5 * 2 * 12 * 10, 2 * 10 * 96 + 560)
    assert (branches.vector_flops, branches.moved_bytes) == (5 * 2 * 12 * 18, 2 * 6 * 96 + 56 * 18)
    assert [x.num_kernels for x in (tree, states, branches)] == [1, 3, 1]
    assert [x.num_states for x in (tree, states, branches)] == [1, 10, 6]


def test_a_chain_has_nothing_to_copy():
    chain = TreeLayer(num_heads=2, num_features=4, num_channels=3, widths=(1, 1, 1))
    tree, branches = one_pass(chain), by_branch(chain)
    assert tree.moved_bytes == branches.moved_bytes
    assert tree.num_states == branches.num_states == 1
    assert tree.vector_flops == branches.vector_flops


def times(**more):
    message = {"op": "tree-recurrence", "device": "h100-sxm", "state_size": 128, "num_heads": 80, "batch": 8} | more
    return {row.variant: row for row in orrery.kernel(**message).rows}


def test_branches_cost_copies_on_a_device():
    """16 states against one: what both read and write of tokens keeps the ratio below 16."""
    found = times(tree="4,2,2,1", launch_s=0)
    one, branches = found["one-pass"], found["branches"]
    assert 2.0 < branches.time_s / one.time_s < 16.0
    assert branches.details["kept_bytes"] == 16 * one.details["kept_bytes"]
    assert one.details["largest_difference"] < 1e-9
    chain = times(tree="1,1,1,1", launch_s=0)
    assert chain["branches"].bytes == chain["one-pass"].bytes


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"tree": "4,x"}, ScenarioError, "4,2,1"),
        ({"tree": "4,0"}, OutOfRange, "write 1 or more"),
        ({"tree": "64,64,64"}, OutOfRange, "4096 tokens"),
        ({"device": "rtx-2080-ti"}, OutOfRange, "no 16-bit"),
    ],
)
def test_mistakes_are_said(settings, error, words):
    with pytest.raises(error, match=words):
        times(**settings)

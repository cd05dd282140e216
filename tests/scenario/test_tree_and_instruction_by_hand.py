"""A recurrence over a tree of draft tokens, and single matrix instructions, by the door of kernels."""

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device

H100 = get_device("h100-sxm")
TREE = {"op": "tree-recurrence", "device": "h100-sxm", "state_size": 4, "head_size": 8, "num_heads": 3, "batch": 2}


def rows(**more):
    return {row.variant: row for row in orrery.kernel(**(TREE | more)).rows}


def test_a_tree_of_two_levels():
    """Widths 2, 3: nine tokens, six branches of three. Six heads of 4 x 8; a state is 768 bytes."""
    found = rows(tree="2,3", launch_s=1e-6)
    state, token = 4 * 6 * 4 * 8, 2 * 6 * 2 * (4 + 8)
    one, each, branches = (found[name] for name in ("one-pass", "token-states", "branches"))
    for row, states, kernels in ((one, 1, 1), (each, 9, 3), (branches, 6, 1)):
        assert (row.details["tokens"], row.details["branches"], row.details["states"]) == (9, 6, states)
        assert row.details["kept_bytes"] == states * state
        memory_s = row.bytes / H100.memory_bandwidth_bytes_per_s
        assert row.roofs_s["memory"] == pytest.approx(memory_s)
        assert row.time_s == pytest.approx(max(row.roofs_s["compute"], memory_s) + kernels * 1e-6)
        assert row.details["largest_difference"] < 1e-9
    assert (one.bytes, each.bytes, branches.bytes) == (
        2 * state + 9 * token,
        2 * 9 * state + 9 * token,
        2 * 6 * state + 18 * token,
    )
    steps = 5 * 6 * 4 * 8
    assert (each.flops, branches.flops) == (9 * steps, 18 * steps)
    matrix = 6 * (2 * 81 * 12 + 2 * 9 * 32)
    assert one.flops == matrix + 3 * steps
    assert each.roofs_s["compute"] == pytest.approx(9 * steps / H100.vector_flops_per_s)
    assert one.roofs_s["compute"] == pytest.approx(
        max(matrix / H100.dense_flops_per_s["bf16"], 3 * steps / H100.vector_flops_per_s)
    )


def test_trees_that_nobody_says_and_that_make_no_sense():
    bare = rows()["one-pass"]
    assert bare.details["tokens"] == 1 + 4 + 8 + 8  # 4, 2, 1
    assert "2.4 µs each (assumed)" in bare.because
    assert "(assumed)" not in rows(launch_s=1e-6)["one-pass"].because
    with pytest.raises(ScenarioError, match="write the children of a token"):
        rows(tree="2,x")


def test_a_sparse_instruction_skips_half_of_what_it_multiplies():
    """64 x 64 x 32 with half of the left operand kept: 65,536 multiply-adds at those of a processor a cycle."""
    found = {r.variant: r for r in orrery.kernel(op="instruction", device="h100-sxm", n=64).rows}
    dense, sparse = found["shared"], found["sparse-shared"]
    macs = H100.dense_flops_per_s["fp16"] / 2 / H100.num_compute_units / H100.compute_clock_hz
    assert dense.details["macs_per_cycle"] == pytest.approx(macs)
    assert (dense.flops, sparse.flops) == (2 * 64 * 64 * 16, 2 * 64 * 64 * 32)
    for row in (dense, sparse):
        assert row.roofs_s["compute"] == pytest.approx(64 * 64 * 16 / macs / H100.compute_clock_hz)
        assert row.roofs_s["shared memory"] == pytest.approx(row.bytes / 128 / H100.compute_clock_hz)
        assert row.time_s == pytest.approx(row.details["cycles"] / H100.compute_clock_hz)
    assert dense.bytes == 2 * (64 * 16 + 64 * 16)
    assert sparse.bytes > found["sparse-registers"].bytes

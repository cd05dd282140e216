"""Small forests: the kernel walks them as a plain reading of the arrays does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.catalog.residuals import FOLDER, read_forests
from orrery.hardware.calibration import ResidualTrees
from orrery.kernels.ops import Elementwise, Timing
from orrery.kernels.residual import CAP, correction
from orrery.kernels.residual.terms import names_of, terms


def forest(seed: int, num_trees: int = 5, num_features: int = 3, deepest: int = 4) -> ResidualTrees:
    """Random trees in the stored layout: children side by side, a leaf leads to itself."""
    random = np.random.default_rng(seed)
    roots, depths, nodes = [], [], []
    for _ in range(num_trees):
        roots.append(len(nodes))
        level, depth = [len(nodes)], 0
        nodes.append(None)
        while level:
            below = []
            for at in level:
                if depth < deepest and random.random() < 0.7:
                    nodes[at] = (int(random.integers(num_features)), float(random.normal()), len(nodes), 0.0)
                    below += [len(nodes), len(nodes) + 1]
                    nodes += [None, None]
                else:
                    nodes[at] = (0, np.inf, at, float(random.normal() * 0.05))
            depth += bool(below)
            level = below
        depths.append(depth)
    feature, threshold, low, value = zip(*nodes, strict=True)
    return ResidualTrees(
        names=tuple("abc"),
        roots=np.array(roots, np.int32),
        depths=np.array(depths, np.int32),
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float32),
        low=np.array(low, np.int32),
        value=np.array(value, np.float32),
    )


def obvious(row: np.ndarray, trees: ResidualTrees) -> float:
    """Walk every tree until a node leads to itself."""
    total = 0.0
    for root in trees.roots:
        at = int(root)
        while (down := int(trees.low[at])) != at:
            at = down if row[trees.feature[at]] <= trees.threshold[at] else down + 1
        total += float(trees.value[at])
    return total


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_kernel_walks_like_the_obvious_reading(seed):
    trees = forest(seed)
    x = np.random.default_rng(seed).normal(size=(20, 3))
    expected = np.exp(np.clip([obvious(row, trees) for row in x], -CAP, CAP))
    np.testing.assert_allclose(correction(x, trees), expected, rtol=1e-12)


def test_a_correction_is_capped():
    trees = forest(0, num_trees=500)
    factor = correction(np.random.default_rng(0).normal(size=(200, 3)), trees)
    assert np.all((factor >= np.exp(-CAP)) & (factor <= np.exp(CAP)))


def test_a_correction_fades_outside_its_range():
    trees = forest(3)
    x = np.tile(np.random.default_rng(1).normal(size=3), (5, 1))
    size = np.array([100.0, 64.0, 64.0 / np.sqrt(2), 32.0, 0.0])
    factor = np.log(correction(x, trees, [(size, (64.0, 1024.0))]))
    assert factor[0] == factor[1] != 0
    assert factor[2] == pytest.approx(factor[0] / 2)
    assert factor[3] == factor[4] == 0


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.npz")), ids=lambda p: p.stem)
def test_stored_forests_are_whole(path):
    for key, trees in read_forests(path).items():
        assert len(key.split("|")) == 3
        assert trees.feature.max() < len(trees.names)
        assert trees.low.min() >= 0
        assert trees.low.max() < len(trees.low)
        leaves = trees.low == np.arange(len(trees.low))
        assert np.all(np.isinf(trees.threshold[leaves]))
        assert np.all(np.isfinite(trees.value))
        assert np.all(trees.value[~leaves] == 0)


def test_all_residual_files_together_are_small():
    assert sum(p.stat().st_size for p in FOLDER.glob("*.npz")) < 2_000_000


@pytest.mark.parametrize(
    ("moved", "cache", "log_ratio"), [(8.0, 2.0, 2.0), (0.0, 0.0, 0.0), (0.0, 4.0, -2.0), (4.0, 0.0, 2.0)]
)
def test_bytes_over_the_cache_count_from_one_byte_on(moved, cache, log_ratio):
    op = Elementwise(kind="add", tokens=4, width=8)
    one = np.array(1.0)
    timing = Timing(
        time_s=2 * one, compute_s=one, memory_s=one / 2, overhead_s=one / 4, flops=one, bytes=np.array(moved)
    )
    row = dict(zip(names_of(Elementwise), terms(op, timing, cache)[0], strict=True))
    assert row["log_cache_ratio"] == log_ratio
    assert (row["compute_frac"], row["memory_frac"], row["launch_frac"]) == (0.5, 0.25, 0.125)
    assert (row["log_launch_ratio"], row["log_balance"]) == (3.0, 1.0)
    assert (row["tokens"], row["width"]) == (2.0, 3.0)

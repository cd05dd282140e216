"""Train a small forest on what a physical rule leaves over, and store forests for ``catalog/residuals.py``.

    trees, report = train(features, names, np.log(measured / physics), shape_of_each_row)
    save(path, {"h100-sxm|bf16|tensorrt-llm": trees})

Rows are those of the fit side only. Inner folds over shapes choose the size and the number of trees, and say whether
the forest beats no forest at all; where it does not, ``trees`` is None.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from orrery.base.files import write_atomically
from orrery.hardware.calibration import ResidualTrees
from orrery.kernels.residual import CAP

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How big and how eager a forest may be."""

    max_leaf_nodes: int = 15
    max_depth: int = 6
    min_samples_leaf: int = 8
    learning_rate: float = 0.1
    max_trees: int = 80
    features_frac: float = 1.0  # of the features, tried at each node


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Mean |log error| on shapes that a forest has not seen, without and with it, and how many trees were best."""

    without: float
    with_trees: float
    num_trees: int


def train(
    features: Floats,
    names: Sequence[str],
    target: Floats,
    shapes: NDArray[np.generic],
    *,
    sizes: Sequence[Size] = (Size(),),
    num_folds: int = 5,
    worth: float = 0.97,
    categories: Floats | None = None,
) -> tuple[ResidualTrees | None, Report]:
    """The best forest by inner folds over ``shapes``; None unless it brings the error below ``worth`` times.

    ``categories``: groups whose own error counts evenly (rows of one group do not outweigh another's); optional.
    """
    target = np.clip(target, -CAP, CAP)
    weights = _even(categories) if categories is not None else np.ones(len(target))
    fold = folds(shapes, num_folds)
    without = float(np.average(np.abs(target), weights=weights))
    best = (without, 0, sizes[0])
    for size in sizes:
        path = np.zeros(size.max_trees)
        for held in range(num_folds):
            model = _grown(features[fold != held], target[fold != held], weights[fold != held], size)
            for i, guess in enumerate(model.staged_predict(features[fold == held])):
                path[i] += np.sum(weights[fold == held] * np.abs(target[fold == held] - guess))
        path /= weights.sum()
        best = min(best, (float(path.min()), int(path.argmin()) + 1, size), key=lambda b: b[0])
    error, num_trees, size = best
    report = Report(without=without, with_trees=error, num_trees=num_trees)
    if num_trees == 0 or error > worth * without:
        return None, report
    return flatten(_grown(features, target, weights, size), num_trees, names), report


def grown(features: Floats, names: Sequence[str], target: Floats, size: Size) -> ResidualTrees:
    """A forest of the full size, unjudged: for those who judge it on devices that it has not seen."""
    target = np.clip(target, -CAP, CAP)
    return flatten(_grown(features, target, np.ones(len(target)), size), size.max_trees, names)


def _grown(features: Floats, target: Floats, weights: Floats, size: Size) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        loss="absolute_error",
        learning_rate=size.learning_rate,
        max_iter=size.max_trees,
        max_leaf_nodes=size.max_leaf_nodes,
        max_depth=size.max_depth,
        min_samples_leaf=size.min_samples_leaf,
        l2_regularization=1.0,
        max_features=size.features_frac,
        early_stopping=False,
        random_state=0,
    ).fit(features, target, sample_weight=weights)


def folds(shapes: NDArray[np.generic], count: int) -> NDArray[np.int64]:
    """A fold for every row; all rows of a shape in the same one."""
    unique, index = np.unique(shapes, return_inverse=True)
    fold_of = np.random.default_rng(0).permutation(len(unique)) % count
    return fold_of[index]


def _even(categories: Floats) -> Floats:
    _, index, count = np.unique(categories, return_inverse=True, return_counts=True)
    return 1.0 / count[index] * len(categories) / len(count)


MARGIN = 1e-6  # thresholds move up by this share, so that rounding a feature does not change its side


def flatten(model: HistGradientBoostingRegressor, num_trees: int, names: Sequence[str]) -> ResidualTrees:
    """The first ``num_trees`` as flat arrays; the model's constant goes into the leaves of the first tree."""
    base = float(np.ravel(model._baseline_prediction)[0])
    roots: list[int] = []
    depths: list[int] = []
    nodes: list[tuple[int, float, int, float]] = []  # feature, threshold, low, value
    for i in range(num_trees):
        tree = model._predictors[i][0].nodes
        roots.append(len(nodes))
        depths.append(int(tree["depth"].max()))
        order = [0]  # breadth first, so that both children stand side by side
        for at in order:
            if not tree[at]["is_leaf"]:
                order += [int(tree[at]["left"]), int(tree[at]["right"])]
        place = {node: roots[-1] + j for j, node in enumerate(order)}
        for at in order:
            node = tree[at]
            if node["is_leaf"]:
                nodes.append((0, np.inf, place[at], float(node["value"]) + (base if i == 0 else 0.0)))
            else:
                limit = float(node["num_threshold"])
                limit += MARGIN * max(1.0, abs(limit))
                nodes.append((int(node["feature_idx"]), limit, place[int(node["left"])], 0.0))
    feature, threshold, low, value = zip(*nodes, strict=True)
    return ResidualTrees(
        names=tuple(names),
        roots=np.array(roots, np.int32),
        depths=np.array(depths, np.int32),
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float32),
        low=np.array(low, np.int32),
        value=np.array(value, np.float32),
    )


def save(path: Path, forests: Mapping[str, ResidualTrees], **beside: NDArray[np.float32]) -> None:
    """All forests of an operation in one compressed file; they share feature names, and keys may share a forest.

    ``beside``: arrays with a line for every key.
    """
    names = next(iter(forests.values())).names
    unique = list({id(trees): trees for trees in forests.values()}.values())
    place = {id(trees): i for i, trees in enumerate(unique)}
    first_tree, first_node, roots = [0], 0, []
    for trees in unique:
        roots.append(trees.roots + first_node)
        first_tree.append(first_tree[-1] + len(trees.roots))
        first_node += len(trees.feature)
    content = io.BytesIO()
    np.savez_compressed(
        content,
        names=np.array(names),
        keys=np.array(list(forests)),
        which=np.array([place[id(trees)] for trees in forests.values()], np.int16),
        forests=np.array(first_tree, np.int32),
        trees=np.append(np.concatenate(roots), first_node).astype(np.int32),
        depths=np.concatenate([t.depths for t in unique]).astype(np.int8),
        feature=np.concatenate([t.feature for t in unique]).astype(np.int8),
        threshold=np.concatenate([t.threshold for t in unique]),
        low=np.concatenate([t.low for t in unique]).astype(np.int16),
        value=np.concatenate([t.value for t in unique]).astype(np.float16),
        **beside,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue())

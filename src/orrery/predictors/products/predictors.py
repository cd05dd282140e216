"""Ways to predict a product's time and power: roofs, rules, lines and forests, one signature for all.

A predictor learns from some samples and answers for others: time and power, two columns.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from orrery.predictors.learn.extra import learning_package
from orrery.predictors.products.samples import Floats, Samples

Predictor = Callable[[Samples, Samples, int, int], Floats]
"""(learned from, asked for, trees, seed) -> time and power of those asked for."""

DEPTH = 6  # of the forest's trees, as the authors of [liu-2024-gemm-ada] set it
SMALLEST_LEAF = 2


def _inputs(samples: Samples) -> Floats:
    """Sizes, block sizes, intensity, bytes and operations, as in [liu-2024-gemm-ada]; then the device's data sheet."""
    return np.column_stack(
        [
            samples.shape_elements,
            samples.block_elements,
            samples.flops / samples.moved_bytes,
            samples.moved_bytes,
            samples.flops,
            samples.peak_flops_per_s,
            samples.bandwidth_bytes_per_s,
            samples.limit_w,
        ]
    )


def _targets(samples: Samples) -> Floats:
    return np.column_stack([samples.time_s, samples.power_w])


def _roofs(known: Samples, queried: Samples, trees: int, seed: int) -> Floats:
    """Operations over the peak or bytes over the bandwidth, at the power limit."""
    compute_s, memory_s = queried.flops / queried.peak_flops_per_s, queried.moved_bytes / queried.bandwidth_bytes_per_s
    return np.column_stack([np.maximum(compute_s, memory_s), queried.limit_w])


def _rules(known: Samples, queried: Samples, trees: int, seed: int) -> Floats:
    """The GEMM and energy rules; where samples are drawn from them, nothing but noise is left."""
    return np.column_stack([queried.rule_s, queried.rule_w])


def _line(known: Samples, queried: Samples, trees: int, seed: int) -> Floats:
    """Least squares."""
    return _fitted(learning_package("sklearn.linear_model").LinearRegression(), known, queried)


def _line_of_logarithms(known: Samples, queried: Samples, trees: int, seed: int) -> Floats:
    """Least squares of logarithms by logarithms."""
    return _fitted_logarithms(learning_package("sklearn.linear_model").LinearRegression(), known, queried)


def _forest(known: Samples, queried: Samples, trees: int, seed: int) -> Floats:
    """A shallow forest a target, as in [liu-2024-gemm-ada]."""
    forest = learning_package("sklearn.ensemble").RandomForestRegressor(
        n_estimators=trees, max_depth=DEPTH, random_state=seed
    )
    return _fitted(learning_package("sklearn.multioutput").MultiOutputRegressor(forest), known, queried)


def _forest_of_logarithms(known: Samples, queried: Samples, trees: int, seed: int) -> Floats:
    """A deep forest of logarithms, both targets in one."""
    forest = learning_package("sklearn.ensemble").RandomForestRegressor(
        n_estimators=trees, min_samples_leaf=SMALLEST_LEAF, random_state=seed
    )
    return _fitted_logarithms(forest, known, queried)


def _forest_on_rules(known: Samples, queried: Samples, trees: int, seed: int) -> Floats:
    """The same forest for what the rules leave over."""
    forest = learning_package("sklearn.ensemble").RandomForestRegressor(
        n_estimators=trees, min_samples_leaf=SMALLEST_LEAF, random_state=seed
    )
    before, after = (np.log(np.column_stack([s.rule_s, s.rule_w])) for s in (known, queried))
    forest.fit(np.column_stack([_logarithms(known), before]), np.log(_targets(known)) - before)
    return np.exp(after + np.asarray(forest.predict(np.column_stack([_logarithms(queried), after]))))


def _fitted(model: Any, known: Samples, queried: Samples) -> Floats:
    return np.asarray(model.fit(_inputs(known), _targets(known)).predict(_inputs(queried)), dtype=np.float64)


def _logarithms(samples: Samples) -> Floats:
    return np.log1p(_inputs(samples))


def _fitted_logarithms(model: Any, known: Samples, queried: Samples) -> Floats:
    model.fit(_logarithms(known), np.log(_targets(known)))
    return np.exp(np.asarray(model.predict(_logarithms(queried)), dtype=np.float64))


PREDICTORS: Mapping[str, Predictor] = {
    "roofs": _roofs,
    "rules": _rules,
    "line": _line,
    "line of logarithms": _line_of_logarithms,
    "forest": _forest,
    "forest of logarithms": _forest_of_logarithms,
    "forest on rules": _forest_on_rules,
}
"""From what needs no samples to what needs the most."""

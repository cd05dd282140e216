"""Predictors of products side by side, on samples and on shapes that they did not learn from."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.base.experiment import Progress, Row
from orrery.predictors.learn.scores import score
from orrery.predictors.products.predictors import PREDICTORS
from orrery.predictors.products.samples import Samples

HELD_OUT_FRAC = 0.2


def compared(
    samples: Samples,
    *,
    trees: int = 100,
    seed: int = 0,
    names: Sequence[str] = tuple(PREDICTORS),
    progress: Progress = lambda done, total: None,
) -> tuple[Row, ...]:
    """A row for every predictor, where single samples are held out and where whole shapes are."""
    rows, total = list[Row](), 2 * len(names)
    for held_out, known, queried in _splits(samples, seed):
        learned_from, targets = samples.rows(known), samples.rows(queried)
        for name in names:
            found = PREDICTORS[name](learned_from, targets, trees, seed)
            rows.append({"held_out": held_out, "predictor": name, **_scores(found, targets)})
            progress(len(rows), total)
    return tuple(rows)


def _splits(samples: Samples, seed: int) -> Iterator[tuple[str, NDArray[np.intp], NDArray[np.intp]]]:
    """Which are learned from and which asked for: a fifth of the samples, then those of a fifth of the shapes."""
    rng, count = np.random.default_rng(seed), samples.time_s.size
    shapes = np.unique(samples.shape_elements, axis=0, return_inverse=True)[1].ravel()
    for held_out, group in (("samples", np.arange(count)), ("shapes", shapes)):
        order = rng.permutation(int(group.max()) + 1)
        is_asked = np.isin(group, order[: max(1, round(HELD_OUT_FRAC * order.size))])
        yield held_out, np.flatnonzero(~is_asked), np.flatnonzero(is_asked)


def _scores(found: NDArray[np.float64], targets: Samples) -> dict[str, float]:
    time, power = score(found[:, 0], targets.judged_s), score(found[:, 1], targets.judged_w)
    return {
        "time_r2": time.r2,
        "time_mean_error_frac": time.mean_error_frac,
        "time_median_error_frac": time.median_error_frac,
        "power_r2": power.r2,
        "power_mean_error_frac": power.mean_error_frac,
        "power_median_error_frac": power.median_error_frac,
    }

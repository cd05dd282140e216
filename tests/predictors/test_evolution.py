"""Evolution of networks: the filter holds, children come from the space, and small beginnings stay smaller."""

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.predictors.cells.evolution import evolved, first_generation
from orrery.predictors.cells.nas_bench_201 import nas_bench_201


def size(cells):
    return cells.sum(axis=1).astype(float)


def worth(cells):
    return np.log1p(size(cells))


def test_nobody_of_the_first_generation_is_too_large():
    cells = first_generation(nas_bench_201(), size, 9.0, 64, np.random.default_rng(0))
    assert size(cells).max() <= 9.0
    assert len(cells) == 64


def test_a_limit_that_nothing_meets_is_refused():
    with pytest.raises(OutOfRange, match="higher limit"):
        first_generation(nas_bench_201(), size, -1.0, 4, np.random.default_rng(0))


def test_every_generation_is_trained_and_a_filter_keeps_it_small():
    space = nas_bench_201()
    runs = [evolved(space, worth, size, limit, 20, 8, np.random.default_rng(3)) for limit in (8.0, np.inf)]
    assert all(run.trained.shape == (160, 6) for run in runs)
    assert all((run.trained < np.array(space.num_alternatives)).all() for run in runs)
    assert size(runs[0].trained).mean() < size(runs[1].trained).mean()


def test_worth_rises_where_size_does_not_matter():
    space, rng = nas_bench_201(), np.random.default_rng(5)
    run = evolved(space, worth, lambda cells: np.zeros(len(cells)), np.inf, 20, 12, rng)
    assert worth(run.last).mean() > worth(run.trained[:20]).max() * 0.99

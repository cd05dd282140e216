"""A user's own points as a data set: rows and classes, cut into parts to train on, to stop by, and to test on."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from orrery.base.labelled_points import labelled_points
from orrery.engine.streams import stream
from orrery.training.small.data import Dataset, Split


def points_of(data: Mapping[str, Any], seed: int) -> Dataset:
    """Rows ``x`` (points, features), standardised, and classes ``y``: half to train on, a quarter each for the rest."""
    rows, labels = labelled_points(data)
    order = stream(seed, "experiment/data").permutation(len(rows))
    parts = np.split(order, [len(rows) // 2, 3 * len(rows) // 4])
    train, validation, test = (Split(rows=rows[part], labels=labels[part]) for part in parts)
    return Dataset(train=train, validation=validation, test=test, num_classes=int(labels.max()) + 1)

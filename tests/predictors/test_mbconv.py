"""Inverted bottlenecks: MobileNetV2's published work, and the space's shape."""

import numpy as np
import pytest

from orrery.predictors.cells.kernels import Place
from orrery.predictors.cells.latency import plan
from orrery.predictors.cells.mbconv import inverted, mbconv, mobilenet_v2

ONLY = np.zeros((1, 1), np.int64)


def test_mobilenet_v2_has_its_300_million_multiply_adds():
    known = plan(mobilenet_v2(), 1)
    assert known.total(known.flops, ONLY)[0] / 2 == pytest.approx(300.8e6, rel=1e-3)


def test_places_that_change_shape_cannot_be_left_out():
    assert len(mbconv().num_alternatives) == 21
    assert mbconv().num_alternatives == (6, 7, 7, 7) * 5 + (6,)


def test_a_block_adds_its_input_only_where_shapes_agree():
    to = Place(batch=1, channels=24, side=28)
    assert len(inverted(to, 24, 3, 6, 1)) == len(inverted(to, 16, 3, 6, 1)) + 1
    assert inverted(to, 24, 3, 1, 1)[0].m == 0

"""Sums of gradients in the gaps of a layer."""

import numpy as np

from orrery.execution.train.gradient_slots import left_over_s


def test_what_fits_into_idle_links_is_free_and_the_rest_is_not():
    reduce_s = np.array([1.0, 5.0, 5.0])
    layer_s, busy_s = np.array([4.0, 4.0, 4.0]), np.array([1.0, 1.0, 6.0])
    assert left_over_s(reduce_s, layer_s, busy_s).tolist() == [0.0, 2.0, 5.0]

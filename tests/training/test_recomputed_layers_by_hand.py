"""Activations of a stage by what it recomputes: kept ones of all its layers, and one layer that is there whole."""

from types import SimpleNamespace

import numpy as np

from orrery.training.memory import activations_of


class _Choices(SimpleNamespace):
    def __len__(self):
        return 3


def test_a_layer_is_there_whole_while_its_gradients_are_made():
    """Four layers that keep 100 bytes, 30 of them where recomputation selects, 10 at their boundary; gradients take 5.
    Beside 400, 120 and 40 bytes stand the gradients alone, and with them the other 70, or 90, of one layer."""
    none = np.zeros(3, dtype=np.int64)
    x = _Choices(recompute=np.array([0, 1, 2]), recompute_modules=none, recompute_layers=none)
    kinds = {"everything": 100.0, "selective": 30.0, "boundary": 10.0, "working": 5.0}
    layer = SimpleNamespace(**{f"{name}_bytes": np.array([value]) for name, value in kinds.items()})
    units = SimpleNamespace(kinds=[(4, layer)])
    kept, moment = activations_of(None, x, units, none, [np.full(3, 4.0)], np.full(3, 4.0))
    assert kept.tolist() == [400.0, 120.0, 40.0]
    assert moment.tolist() == [5.0, 75.0, 95.0]

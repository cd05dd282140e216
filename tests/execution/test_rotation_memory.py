"""Learning rotations layer by layer fits one device where end to end needs several."""

import pytest

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.rotation_memory import devices_end_to_end, end_to_end, layer_wise

CALIBRATION = 512 * 2048
SEQUENCE = 2048
CAPACITY = get_device("h100-sxm").memory_capacity_bytes


def test_a_70b_model_needs_one_device_layer_by_layer_and_several_end_to_end():
    model = get_model("llama-3-70b")
    assert layer_wise(model, CALIBRATION).total_bytes < CAPACITY
    assert end_to_end(model, SEQUENCE, 2).total_bytes > CAPACITY
    assert devices_end_to_end(model, SEQUENCE, CAPACITY) == 4


def test_small_models_fit_one_device_either_way():
    model = get_model("llama-3-8b")
    assert layer_wise(model, CALIBRATION).total_bytes < CAPACITY
    assert devices_end_to_end(model, SEQUENCE, CAPACITY) == 1


def test_sharing_out_saves_nothing_but_stored_weights():
    model = get_model("llama-3-70b")
    one, four = end_to_end(model, SEQUENCE, 1), end_to_end(model, SEQUENCE, 4)
    assert one.total_bytes - four.total_bytes == pytest.approx(2 * model.num_parameters * 3 / 4)
    assert four.rotated_bytes == one.rotated_bytes


def test_layer_by_layer_does_not_care_how_many_layers_there_are():
    model = get_model("llama-3-70b")
    found = layer_wise(model, CALIBRATION)
    assert found.weights_bytes == pytest.approx(2 * sum(b.num_parameters for b in model.blocks) / model.num_layers)
    assert found.activations_bytes == 4 * model.hidden_size * CALIBRATION


def test_what_fits_no_machine_is_refused_with_numbers():
    with pytest.raises(OutOfRange, match="GB"):
        devices_end_to_end(get_model("llama-3-70b"), SEQUENCE, 8e9)

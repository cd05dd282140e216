"""Memory of learning rotations by `orrery quantize --model`: by hand, where it fits, and what is refused."""

import pytest

from orrery import quantize
from orrery.base.errors import ScenarioError
from orrery.catalog.models import get_model

MATRIX = {"formats": "int4", "rows": 32, "columns": 32}
LEARNT = {"recipes": "kurtail", "model": "llama-3.1-8b", "device": "h100-sxm"}


def fit(**more):
    return quantize("normal", **MATRIX, **LEARNT | more).fitting


def test_layer_by_layer_by_hand():
    # one layer in 16 bits, what enters its two halves for all tokens, and a rotation with gradient and two moments
    model = get_model("llama-3.1-8b")
    layer = model.blocks[0].num_parameters / 32
    found = fit(calibration_tokens=1000)
    assert found.layer_wise_bytes == pytest.approx(2 * layer + 2 * 2 * 4096 * 1000 + 4 * 4 * 4096**2)
    assert found.layer_wise_devices == 1
    assert fit().layer_wise_bytes > found.layer_wise_bytes  # 1,048,576 tokens where nobody says


def test_longer_sequences_and_small_devices_need_more_of_them():
    few, many = (fit(model="llama-3-70b", device=name) for name in ("h200-sxm", "h100-sxm"))
    assert few.end_to_end_devices < many.end_to_end_devices
    assert fit(sequence_tokens=512).end_to_end_bytes < fit(sequence_tokens=4096).end_to_end_bytes
    assert fit(model="llama-3-70b", device="l4").end_to_end_devices is None


def test_without_a_model_nothing_is_told():
    plain = quantize("normal", **MATRIX, recipes="kurtail")
    assert plain.fitting is None
    assert plain.to_json()["fitting"] is None
    assert quantize("normal", **MATRIX, **LEARNT).totals == plain.totals


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": None}, "device: no effect without a model"),
        ({"device": None}, "device: missing"),
        ({"recipes": None}, "serves recipes that learn"),
        ({"recipes": "gptq"}, 'write recipes = "kurtail"'),
        ({"model": None, "device": None, "sequence_tokens": 5}, "sequence_tokens: no effect"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(ScenarioError, match=words):
        quantize("normal", **MATRIX, **{k: v for k, v in (LEARNT | change).items() if v is not None})

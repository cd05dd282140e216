"""The space holds what engines can run, and nothing else."""

import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.planner.space import Fixed, default_weights, formats, layouts


@pytest.mark.parametrize("name", ["llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3", "gemma-2-9b"])
@pytest.mark.parametrize("most", [1, 6, 16])
def test_layouts_respect_heads_layers_experts_and_devices(name: str, most: int) -> None:
    model, device = get_model(name), get_device("h100-sxm")
    found = list(layouts(model, device, most, Fixed()))
    assert len(found) == len(set(found)) > 0
    heads = [b.mixer.num_heads for b in model.blocks if b.mixer]
    experts = [b.experts.num_experts for b in model.blocks if b.experts]
    for layout in found:
        assert layout.num_devices <= most
        assert all(h % layout.tp == 0 for h in heads)
        assert layout.tp <= device.devices_per_node
        assert layout.pp <= model.num_layers
        assert layout.ep == 1 or (experts and all(e % layout.ep == 0 for e in experts))
        assert layout.ep in (1, layout.tp * layout.dp)
        assert layout.dp == 1 or layout.ep > 1


def test_fewest_devices_come_first() -> None:
    found = list(layouts(get_model("qwen3-30b-a3b"), get_device("h100-sxm"), 8, Fixed()))
    sizes = [x.num_devices for x in found]
    assert sizes == sorted(sizes)


def test_what_is_fixed_stays() -> None:
    found = list(layouts(get_model("deepseek-v3"), get_device("h200-sxm"), 16, Fixed(tp=2, ep=8)))
    assert found
    assert all(x.tp == 2 and x.ep == 8 for x in found)


def test_formats_are_those_a_device_multiplies() -> None:
    model = get_model("llama-3.1-70b")
    hopper = {(f.weights, f.activations, f.kv) for f in formats(model, get_device("h100-sxm"), Fixed())}
    assert ("fp8", "fp8", "bf16") in hopper
    assert ("bf16", "bf16", "fp8") in hopper
    ampere = {f.kv for f in formats(model, get_device("a100-sxm-80gb"), Fixed())}
    assert ampere == {"bf16"}
    unpacked = next(formats(model, get_device("h100-sxm"), Fixed(weights=("int4_weight_only",))))
    assert unpacked.activations == "bf16"


def test_a_quantised_checkpoint_keeps_its_format() -> None:
    assert default_weights(get_model("deepseek-v3"), get_device("h200-sxm")) == ("fp8_block",)

"""Checkpoints of several formats: what each role is stored and multiplied in, and what unpacked weights run at."""

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.draft_head import acceptances_of
from orrery.execution.formats import as_multiplied_by
from orrery.models.config import parse
from orrery.models.model import Model
from orrery.numerics.registry import get_format
from orrery.scenario.ask import Answer

LLAMA = {
    "model_type": "llama",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 32,
}
FLOAT_4 = {"num_bits": 4, "type": "float", "group_size": 16}
FLOAT_8 = {"num_bits": 8, "type": "float"}


def stored(**quantization: object) -> Model:
    return parse({**LLAMA, "quantization_config": quantization}, name="x")


def test_nvfp4_weights_beside_16_bit_activations_are_a_format_of_their_own():
    """4 bits, and 8 bits of a scale for 16 of them: 4.5 bits an element, multiplied in 16."""
    found = get_format("nvfp4_weight_only")
    assert (found.bits_per_element, found.weight_only) == (4.5, True)
    assert stored(quant_algo="W4A16_NVFP4").weights_format == "nvfp4_weight_only"
    groups = {"group_0": {"weights": FLOAT_4, "input_activations": None, "targets": ["Linear"]}}
    assert stored(quant_method="compressed-tensors", config_groups=groups).weights_format == "nvfp4_weight_only"
    groups["group_0"]["input_activations"] = FLOAT_4
    assert stored(quant_method="compressed-tensors", config_groups=groups).weights_format == "nvfp4"


def test_groups_of_layers_have_formats_of_their_own():
    groups = {
        "group_0": {"weights": FLOAT_4, "input_activations": FLOAT_4, "targets": ["re:.*mlp.*"]},
        "group_1": {"weights": FLOAT_8, "input_activations": FLOAT_8, "targets": ["re:.*self_attn.*", "lm_head"]},
    }
    model = stored(quant_method="compressed-tensors", config_groups=groups)
    assert model.weights_format == "nvfp4"
    assert dict(model.role_formats) == {"attention": "fp8", "head": "fp8"}
    assert model.kept_16bit_roles == {"router"}
    layers = {
        "model.layers.0.mlp.experts.0.up_proj": {"quant_algo": "NVFP4"},
        "model.layers.0.mlp.experts.1.up_proj": {"quant_algo": "NVFP4"},
        "model.layers.0.mlp.shared_experts.up_proj": {"quant_algo": "FP8"},
        "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
        "model.layers.1.self_attn.q_proj": {"quant_algo": "FP8"},
    }
    model = stored(quant_algo="MIXED_PRECISION", quantized_layers=layers)
    assert (model.weights_format, model.experts_format, model.role_formats) == ("fp8", "nvfp4", ())


@pytest.mark.parametrize(
    ("words", "cache"),
    [
        ({"kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"kv_cache_scheme": "FP8"}, "fp8"),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "fp8"),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "int"}}, ""),
        ({}, ""),
    ],
)
def test_scales_of_a_cache(words: dict[str, object], cache: str):
    assert stored(quant_method="fp8", **words).cache_format == cache


def test_a_mixed_checkpoint_holds_the_bytes_of_each_role():
    """Qwen3.6-27B in mixed precision is published as 21.9 GB (noonghunna/club-3090#603). Feed-forward parts, 64 x 3 x
    5120 x 17408 = 17,112,760,320, and the head, 5120 x 248320, take 4.5 bits; products of both kinds of attention 8;
    the embedding and a tower of 460,730,096 take 16, and so does a layer for drafts of 424,699,392, not loaded here.
    """
    found = orrery.estimate(model="nvidia/Qwen3.6-27B-NVFP4", device="b200", input_tokens=64, output_tokens=8, batch=1)
    head = embedding = 5120 * 248320
    narrow, tower, draft = 17_112_760_320 + head, 460_730_096, 424_699_392
    attention = 27_356_728_560 - tower - narrow - embedding
    held = narrow * 4.5 / 8 + attention + 2 * (embedding + tower)
    assert isinstance(found, Answer)
    assert found.estimate.memory.weights_bytes == pytest.approx(held, rel=0.005)
    assert found.estimate.memory.weights_bytes + 2 * draft == pytest.approx(21.9e9, abs=0.05e9)
    assert found.estimate.deployment.formats.kv == "fp8"


def test_unpacked_weights_run_at_the_rate_of_one_warps_instructions():
    b200, h100, a100 = (get_device(name) for name in ("b200", "h100-sxm", "a100-sxm-80gb"))
    assert as_multiplied_by("marlin", "nvfp4_weight_only", b200).dense_flops_per_s["bf16"] == pytest.approx(
        b200.dense_flops_per_s["bf16"] / 4
    )
    assert as_multiplied_by("marlin", "int4_weight_only", h100).dense_flops_per_s["bf16"] == pytest.approx(
        0.629 * h100.dense_flops_per_s["bf16"]
    )
    assert as_multiplied_by("marlin", "int4_weight_only", a100) is a100
    assert as_multiplied_by("marlin", "bf16", b200) is b200
    assert as_multiplied_by("machete", "int4_weight_only", h100) is h100


def test_acceptances_of_an_accepted_length():
    """1 + a + a^2 = 1.75 has a = 0.5; one guess that always holds keeps two tokens, none keeps one."""
    assert acceptances_of(1.75, 2) == pytest.approx((0.5, 0.5))
    assert acceptances_of(2.0, 1) == pytest.approx((1.0,))
    assert acceptances_of(1.0, 3) == pytest.approx((0.0, 0.0, 0.0))
    chance = acceptances_of(3.5, 5)[0]
    assert sum(chance**i for i in range(6)) == pytest.approx(3.5)
    with pytest.raises(ScenarioError, match="acceptance_length: got 3; a step of 1 guesses keeps 1 to 2 tokens"):
        acceptances_of(3.0, 1)


def test_the_catalogue_knows_two_checkpoints_of_mixed_precision():
    assert get_model("nvidia/Qwen3.6-35B-A3B-NVFP4").weights_format == "nvfp4_weight_only"

"""A model's config.json, and what is made of it."""

import json
from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.models.read import read_model

PLAIN = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "head_dim": 64,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
EXPERTS = PLAIN | {
    "model_type": "qwen3_moe",
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 256,
    "quantization_config": {
        "quant_method": "fp8",
        "weight_block_size": [128, 128],
        "modules_to_not_convert": ["lm_head"],
    },
}
LATENT = PLAIN | {
    "model_type": "deepseek_v3",
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 32,
    "v_head_dim": 32,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "rope_scaling": {"type": "yarn", "factor": 40},
}
SLIDING = PLAIN | {"model_type": "gemma3_text", "sliding_window": 1024, "layer_types": ["full_attention"] * 4}
WINDOWS = PLAIN | {"model_type": "mistral", "sliding_window": None, "vision_config": {"hidden_size": 64}}

NAME = "config.json"
SEEDS = tuple(json.dumps(config).encode() for config in (PLAIN, EXPERTS, LATENT, SLIDING, WINDOWS))
WORDS = (
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"-1",
    b"0",
    b"1e400",
    b"NaN",
    b"9" * 40,
    b'"gpt2"',
    b'"mamba2"',
    b'"t5"',
    b'"bert"',
    b'"mixtral"',
    b'"phi3"',
    b'"gpt_oss"',
    b'"falcon"',
    b'"nemotron_h"',
    b'"qwen2_vl"',
    b'"vit"',
    b'"layers"',
    b'"text_config"',
    b'"n_embd"',
    b'"n_layer"',
    b'"n_head"',
    b'"attn_config"',
    b'"bits"',
    b'"group_size"',
)
REFUSALS = (OrreryError,)


def read(path: Path) -> None:
    """The model; its own figures too."""
    model = read_model(path)
    assert model.num_parameters >= 0
    assert model.family

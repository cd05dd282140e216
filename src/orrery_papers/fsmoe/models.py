"""FSMoE's models through ``orrery train``: both streams and gradients in the gaps, against one stream (Tutel), and
against none with tokens dispatched by masks (DeepSpeed-MoE).

Experts are dealt over nodes and cut over the devices of each, as attention is; every expert is padded to its capacity.
"""

from typing import Any

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Setup
from orrery.models.model import Model, SoftmaxAttention
from orrery_papers.shared.described import config_file
from orrery_papers.shared.trained_by import settings_of, trained

MAX_CHUNKS = 8
HEADS = 40
"""Heads of GPT-2 XL, whose 25 cannot be shared out over a node's devices; see [unstated] heads."""


def model_gains(setup: Setup, name: str) -> tuple[float, float]:
    """Steps of one stream of collectives, and of masks with nothing beside anything, over the step of two."""
    settings = model_settings(setup, name)
    serial = settings | {"gradient_overlap": "gradient-serial"}
    pipelined = serial | {"expert_overlap": "expert-pipeline"}
    ours_s = step_s(settings | {"gradient_overlap": "gradient-slots", "expert_overlap": "expert-pipeline"})
    chunked_s = [step_s(pipelined | {"knob": _one_stream(chunks)}) for chunks in range(1, MAX_CHUNKS + 1)]
    return min(chunked_s) / ours_s, step_s(serial | {"dispatcher": "einsum-flat"}) / ours_s


def _one_stream(chunks: int) -> list[str]:
    return [f"expert_overlap.has_two_streams=0,expert_overlap.num_chunks={chunks}"]


def step_s(settings: dict[str, Any]) -> float:
    """Seconds of a step of ``orrery train``."""
    return trained(**settings).step_time_s


def model_settings(setup: Setup, name: str) -> dict[str, Any]:
    """The set-up's job with that model's feed-forward parts as experts."""
    devices, per_node = int(setup.number("num_devices")), int(setup.number("num_devices_per_node"))
    nodes, each = devices // per_node, int(setup.number("num_micro_batch"))
    return settings_of(
        setup,
        model=config_file(with_experts(get_model(name), nodes, setup), name),
        framework="megatron-lm",
        tp=per_node,
        ep=nodes,
        etp=per_node,
        micro_batch=each * per_node,
        global_batch=each * devices,
        sharding="none",
        recompute="none",
        sequence_parallel=True,
        dispatcher="all-to-all",
        expert_capacity_factor=setup.number("capacity_ratio"),
        pad_experts=True,
    )


def with_experts(model: Model, num_experts: int, setup: Setup) -> dict[str, Any]:
    """The model's config with so many experts in each of the set-up's layers."""
    block = model.blocks[0]
    mixer, width = block.mixer, model.hidden_size
    assert isinstance(mixer, SoftmaxAttention)
    is_sharable = mixer.num_heads % int(setup.number("num_devices_per_node")) == 0
    heads = mixer.num_heads if is_sharable else HEADS
    return {
        "model_type": "mixtral",
        "hidden_size": width,
        "num_hidden_layers": int(setup.number("num_layers")),
        "num_attention_heads": heads,
        "num_key_value_heads": mixer.num_kv_heads if is_sharable else heads,
        "intermediate_size": block.experts.ffn_size if block.experts else _gated_width(model),
        "vocab_size": model.vocab_size,
        "num_local_experts": num_experts,
        "num_experts_per_tok": int(setup.number("num_experts_per_token")),
        "max_position_embeddings": int(setup.number("sequence_tokens")),
    }


def _gated_width(model: Model) -> int:
    """Width of a gated feed-forward part with as many parameters, in multiples that devices can share out."""
    parameters = sum(x.num_parameters for x in model.blocks[0].linears if x.role == "mlp")
    return parameters // (3 * model.hidden_size) // 8 * 8

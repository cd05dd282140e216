"""A toy layer of training: 8 wide, 4 query heads on 2 key heads of 2 + 2, a gated feed-forward part of 12, 2 sequences
of 16 tokens; and a machine that moves a word a second and does an operation a second."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.cut import choice_of, product
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm, LatentPrefill, Recurrent
from orrery.models.model import (
    Block,
    CompressedAttention,
    Experts,
    LatentAttention,
    Linear,
    RecurrentMixer,
    SoftmaxAttention,
)

HIDDEN, SEQ, VOCAB = 8, 16, 20
SOFTMAX = SoftmaxAttention(num_heads=4, num_kv_heads=2, head_size=2, value_head_size=2)
LATENT = LatentAttention(
    num_heads=4, q_lora_rank=0, kv_lora_rank=6, nope_head_size=3, rope_head_size=1, value_head_size=2
)
COMPRESSED = CompressedAttention(num_heads=4, head_size=2, window_tokens=3, ratio=4)
RECURRENT = RecurrentMixer(
    kind="mamba2", num_heads=4, state_elements=64, conv_elements=12, flops_per_token=96.0, width=16
)
WORDS = {"norm": 2, "add": 3, "gated_activation": 3, "rope": 2, "softmax": 2, "embedding": 2, "quantise": 1}


def linear(name, in_features, out_features, shard, role, **more) -> Linear:
    return Linear(name=name, in_features=in_features, out_features=out_features, shard=shard, role=role, **more)


LINEARS = (
    linear("qkv", 8, 16, "column", "attention", kv_heads=2),
    linear("o", 8, 8, "row", "attention"),
    linear("gate_up", 8, 24, "column", "mlp"),
    linear("down", 12, 8, "row", "mlp"),
)
DENSE = Block(
    name="dense", count=1, linears=LINEARS, mixer=SOFTMAX, norm_elements=16, activation_elements=12, other_parameters=16
)
EXPERTS = Experts(num_experts=4, experts_per_token=2, hidden_size=8, ffn_size=10)
ROUTED = replace(
    DENSE,
    linears=(*LINEARS[:2], linear("router", 8, 4, "replicated", "router")),
    experts=EXPERTS,
    activation_elements=0,
)
PLAIN = {
    "has_fused_attention": True,
    "has_native_attention": True,
    "is_fused": True,
    "has_dropout": False,
    "fuses_loss": False,
    "fuses_experts": False,
    "dispatcher": "all-gather",
    "packed_tokens": 0.0,
    "attention_format": "",
    "selective": "attention",
    "adapter_targets": "all-linear",
    "drops_adapted": False,
    "keeps_frozen_inputs": False,
    "fuses_gradient_sums": False,
    "keeps_wide_layers": True,
    "turns_stretched_apart": False,
}


def job_of(recipe="bf16", task="pretrain", seq=SEQ, rotation=None, **framework) -> TrainingJob:
    device = get_device("h100-sxm")
    head = linear("head", HIDDEN, VOCAB, "vocab", "head")
    model = replace(
        get_model("llama-3.1-8b"), hidden_size=HIDDEN, vocab_size=VOCAB, blocks=(DENSE,), head=head, rotation=rotation
    )
    return TrainingJob(
        model=model,
        cluster=Cluster(device=device, num_devices=8, devices_per_node=8),
        framework=replace(get_framework("megatron-lm", device, "bf16"), **(PLAIN | framework)),
        recipe=get_recipe(recipe),
        seq_len=seq,
        global_batch=8,
        task=task,
    )


def cut(**degrees):
    return choice_of([TrainingLayout(**({"micro_batch": 2} | degrees))])


def parts(block, choice):
    return [product(x, block.mixer, choice.tp) for x in block.linears]


def seconds(op):
    """Words, operations, pairs and tokens are seconds."""
    match op:
        case Elementwise():
            time_s = WORDS[op.kind] * np.asarray(op.tokens * op.width, dtype=float)
        case Gemm():
            time_s = 2.0 * np.asarray(op.m * op.n * op.k * op.batch, dtype=float)
        case AttentionPrefill() | LatentPrefill():
            time_s = np.asarray(op.batch * op.num_heads * op.query_tokens * op.context_tokens, dtype=float)
        case Recurrent():
            time_s = np.asarray(op.tokens * op.num_heads, dtype=float)
    return SimpleNamespace(time_s=time_s)

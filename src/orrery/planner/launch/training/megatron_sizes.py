"""A model's sizes as flags of Megatron-LM's ``pretrain_gpt.py``; refuses what the flags cannot say."""

from orrery.models.model import Block, LatentAttention, Linear, Mixer, Model, SoftmaxAttention
from orrery.planner.launch.training.script import Draft

ACTIVATIONS = {"nemotron": "--squared-relu"}
"""Families whose feed-forward part is not gated and not GELU."""

WITHOUT_FLAG = {"opt": "ReLU", "gemma": "a gate of GELU", "phi": "norms shared by attention and feed-forward part"}
"""Families whose layers need code."""

DENSE_FIRST = ("deepseek", "deepseek_v2", "deepseek_v3", "glm4_moe", "glm4_moe_lite", "kimi_k2")
"""Families whose dense layers all come first."""


def add_sizes(model: Model, draft: Draft) -> str:
    """Write the sizes; the reason where a flag is missing, else ""."""
    if reason := _beyond_flags(model):
        return reason
    first = model.blocks[0]
    draft.add("--num-layers", model.num_layers)
    draft.add("--hidden-size", model.hidden_size)
    return _attention(model, first, draft) or _feed_forward(model, draft) or _rest(model, first, draft)


def _beyond_flags(model: Model) -> str:
    if model.encoder or model.tower_parameters:
        return f"{model.name} has an encoder or a tower; pretrain_gpt.py builds decoders of text only"
    if what := WITHOUT_FLAG.get(model.family):
        return f"{model.name} has {what}, which no flag says; use megatron-bridge"
    mixers = {b.mixer for b in model.blocks}
    if len(mixers) > 1:
        return f"{model.name} mixes kinds of attention from layer to layer; use megatron-bridge, which knows the order"
    return ""


def _attention(model: Model, block: Block, draft: Draft) -> str:
    mixer = block.mixer
    if isinstance(mixer, LatentAttention) and not mixer.top_tokens:
        draft.add("--num-attention-heads", mixer.num_heads)
        draft.add("--multi-latent-attention")
        if mixer.q_lora_rank:
            draft.add("--q-lora-rank", mixer.q_lora_rank)
        draft.add("--kv-lora-rank", mixer.kv_lora_rank)
        draft.add("--qk-head-dim", mixer.nope_head_size)
        draft.add("--qk-pos-emb-head-dim", mixer.rope_head_size)
        draft.add("--v-head-dim", mixer.value_head_size)
        return ""
    if not isinstance(mixer, SoftmaxAttention) or not _is_plain(mixer):
        return f"{model.name}: pretrain_gpt.py has no flags for its token mixer; use megatron-bridge"
    draft.add("--num-attention-heads", mixer.num_heads)
    if mixer.num_kv_heads != mixer.num_heads:
        draft.add("--group-query-attention")
        draft.add("--num-query-groups", mixer.num_kv_heads)
    if mixer.head_size * mixer.num_heads != model.hidden_size:
        draft.add("--kv-channels", mixer.head_size)
    if mixer.window_tokens:
        draft.add("--window-size", f"{mixer.window_tokens - 1},0")
    return ""


def _is_plain(mixer: SoftmaxAttention) -> bool:
    odd = mixer.chunk_tokens or mixer.has_sinks or mixer.keys_are_values or mixer.top_tokens
    return mixer.is_causal and mixer.owns_cache and mixer.value_head_size == mixer.head_size and not odd


def _feed_forward(model: Model, draft: Draft) -> str:
    """The dense part, then the experts: ``--ffn-hidden-size`` is the dense one, else the experts'."""
    dense = [b for b in model.blocks if b.experts is None]
    routed = [b for b in model.blocks if b.experts is not None]
    if dense:
        draft.add("--ffn-hidden-size", _width(dense[0]))
    gated = {_is_gated(b) for b in model.blocks}
    if len(gated) > 1 or len({_width(b) for b in dense}) > 1:
        return f"{model.name} has feed-forward parts of several kinds; use megatron-bridge"
    if not routed:
        return _activation(model, gated, draft)
    experts = routed[0].experts
    if experts is None or len({b.experts for b in routed}) > 1 or experts.has_bias:
        return f"{model.name} has experts with biases or of several sizes; use megatron-bridge"
    if not dense:
        draft.add("--ffn-hidden-size", experts.ffn_size)
    draft.add("--num-experts", experts.num_experts)
    draft.add("--moe-router-topk", experts.experts_per_token)
    draft.add("--moe-ffn-hidden-size", experts.ffn_size)
    if shared := sum(x.in_features for x in routed[0].linears if x.name == "shared_down"):
        draft.add("--moe-shared-expert-intermediate-size", shared)
    if experts.hidden_size != model.hidden_size:
        draft.add("--moe-latent-size", experts.hidden_size)
    draft.add("--moe-grouped-gemm")
    return _order(model, dense, draft) or _activation(model, gated, draft)


def _order(model: Model, dense: list[Block], draft: Draft) -> str:
    if not dense:
        return ""
    if model.family not in DENSE_FIRST:
        return f"{model.name} mixes dense layers and layers of experts in an order of its own; use megatron-bridge"
    first = sum(b.count for b in dense)
    draft.add("--moe-layer-freq", f"([0]*{first}+[1]*{model.num_layers - first})")
    return ""


def _activation(model: Model, gated: set[bool], draft: Draft) -> str:
    if True in gated:
        draft.add("--swiglu")
    elif flag := ACTIVATIONS.get(model.family):
        draft.add(flag)
    return ""


def _is_gated(block: Block) -> bool:
    if block.experts is not None:
        return block.experts.is_gated
    return any(x.name == "gate_up" for x in block.linears)


def _width(block: Block) -> int:
    return next((x.in_features for x in block.linears if x.name == "down"), 0)


def _rest(model: Model, block: Block, draft: Draft) -> str:
    return _norms(model, block, draft) or _biases(model, block, draft) or _embeddings(model, block.mixer, draft)


def _norms(model: Model, block: Block, draft: Draft) -> str:
    """A norm with a bias has two parameters an element; what is left after two norms of the stream is of q and k."""
    mixer, left = block.mixer, block.norm_elements - 2 * model.hidden_size
    draft.add("--normalization", "LayerNorm" if block.other_parameters >= 1.5 * block.norm_elements else "RMSNorm")
    if left == 0:
        return ""
    if isinstance(mixer, SoftmaxAttention):
        normed = (mixer.num_heads + mixer.num_kv_heads) * mixer.head_size
        if left != normed:
            return (
                f"{model.name} has other norms than the two of each layer and of queries and keys; use megatron-bridge"
            )
    draft.add("--qk-layernorm")
    return ""


def _biases(model: Model, block: Block, draft: Draft) -> str:
    retained = [x for x in block.linears if x.role in ("attention", "mlp")]
    first, others = [x for x in retained if x.name == "qkv"], [x for x in retained if x.name != "qkv"]
    if _all_biased(retained):
        return ""
    if any(x.has_bias for x in others):
        return f"{model.name} has biases in some linear layers only; use megatron-bridge"
    draft.add("--disable-bias-linear")
    if _all_biased(first):
        draft.add("--add-qkv-bias")
    return ""


def _all_biased(linears: list[Linear]) -> bool:
    return bool(linears) and all(x.has_bias for x in linears)


def _embeddings(model: Model, mixer: Mixer | None, draft: Draft) -> str:
    """The tokenizer says how many words there are."""
    if not model.is_head_tied:
        draft.add("--untie-embeddings-and-output-weights")
    if isinstance(mixer, SoftmaxAttention) and not mixer.rotary:
        draft.add("--position-embedding-type", "learned_absolute")
        return ""
    draft.add("--position-embedding-type", "rope")
    return _rotation(model, mixer, draft)


def _rotation(model: Model, mixer: Mixer | None, draft: Draft) -> str:
    """The base of rotations and how sequences became longer; latent attention has YaRN alone, Megatron's default."""
    turned = model.rotation
    if turned is None:
        draft.variable("--rotary-base", "ROTARY_BASE", "rope_theta of the config.json")
        return ""
    draft.add("--rotary-base", round(turned.base))
    if turned.share != 1.0:
        draft.add("--rotary-percent", f"{turned.share:g}")
    if isinstance(mixer, LatentAttention):
        if turned.kind not in ("", "yarn"):
            return f"{model.name} stretches rotations by {turned.kind}, latent attention by YaRN; use megatron-bridge"
        draft.add("--rope-type", turned.kind or "rope")
        if turned.kind:
            draft.add("--rotary-scaling-factor", f"{turned.stretch_ratio:g}")
    elif turned.kind == "llama3":
        draft.add("--use-rope-scaling")
        draft.add("--rope-scaling-factor", f"{turned.stretch_ratio:g}")
    elif turned.kind == "linear" and turned.stretch_ratio == round(turned.stretch_ratio):
        draft.add("--rotary-seq-len-interpolation-factor", round(turned.stretch_ratio))
    elif turned.kind:
        return f"{model.name} stretches rotations by {turned.kind}, for which no flag stands; use megatron-bridge"
    return ""

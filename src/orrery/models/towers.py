"""Parameters of the towers for pictures and sound that multi-modal configs describe, with their projectors.

A tower is counted, not modelled layer by layer: it costs memory in every deployment and time only for images. Kinds
that are not listed here are counted as ordinary encoders of their sizes, and configs without sizes leave the tower out;
both say so.
"""

from collections.abc import Callable

from orrery.models.fields import Fields


def _linear(inputs: int, outputs: int, bias: bool = True) -> int:
    return inputs * outputs + outputs * bias


def _encoder_layer(hidden: int, ffn: int, bias: bool = True, norm: int = 2) -> int:
    """Square attention, a plain feed-forward part, two norms of ``norm`` weights an element."""
    return (
        4 * _linear(hidden, hidden, bias) + _linear(hidden, ffn, bias) + _linear(ffn, hidden, bias) + 2 * norm * hidden
    )


def _patches(v: Fields, hidden: int, bias: bool, frames: int = 1, patch: int = 14) -> int:
    size = v.size("patch_size", "spatial_patch_size", default=patch)
    return _linear(v.size("in_channels", "num_channels", "in_chans", default=3) * frames * size * size, hidden, bias)


def _qwen3(v: Fields, text_hidden: int) -> int:
    """Qwen3-VL and Qwen3.5: learned positions, one merger at the end and one for each deep-stacked layer."""
    hidden, ffn, out = v.size("hidden_size"), v.size("intermediate_size"), v.size("out_hidden_size")
    merged = hidden * v.size("spatial_merge_size", default=2) ** 2
    merger = _linear(merged, merged) + _linear(merged, out)
    deep = len(v.items("deepstack_visual_indexes"))
    return (
        _patches(v, hidden, True, v.size("temporal_patch_size", default=2), 16)
        + v.size("num_position_embeddings", default=2304) * hidden
        + v.size("depth") * _encoder_layer(hidden, ffn)
        + (merger + 2 * hidden)
        + deep * (merger + 2 * merged)
    )


def _qwen2_5(v: Fields, text_hidden: int) -> int:
    """Qwen2.5-VL: RMS norms and a gated feed-forward part with biases."""
    hidden, ffn = v.size("hidden_size"), v.size("intermediate_size")
    out = v.size("out_hidden_size", default=text_hidden)
    merged = hidden * v.size("spatial_merge_size", default=2) ** 2
    layer = 4 * _linear(hidden, hidden) + 2 * _linear(hidden, ffn) + _linear(ffn, hidden) + 2 * hidden
    merger = hidden + _linear(merged, merged) + _linear(merged, out)
    return _patches(v, hidden, False, v.size("temporal_patch_size", default=2)) + v.size("depth") * layer + merger


def _qwen2_vl(v: Fields, text_hidden: int) -> int:
    """Qwen2-VL: ``hidden_size`` is the language model's; a plain feed-forward part ``mlp_ratio`` times as wide."""
    hidden = v.size("embed_dim", default=1280)
    merged = hidden * v.size("spatial_merge_size", default=2) ** 2
    merger = 2 * hidden + _linear(merged, merged) + _linear(merged, text_hidden)
    layers = v.size("depth", default=32) * _encoder_layer(hidden, hidden * v.size("mlp_ratio", default=4))
    return _patches(v, hidden, False, v.size("temporal_patch_size", default=2)) + layers + merger


def _side(v: Fields, key: str, default: int) -> int:
    """A size that configs state as a number, or as height and width."""
    return v.sizes(key)[0] if isinstance(v.data.get(key), list) else v.size(key, default=default)


def _internvit(v: Fields, text_hidden: int) -> int:
    """InternVL: scaled residuals; RMS norms, also of queries and keys, and q, k, v without biases in the larger tower;
    four patches merged into the projector's two matrices."""
    hidden, ffn = v.size("hidden_size", default=1024), v.size("intermediate_size", default=4096)
    norm = 1 if v.word("norm_type", default="layer_norm") == "rms_norm" else 2
    qkv = 3 * _linear(hidden, hidden, v.flag("attention_bias"))
    norms = 2 * norm * hidden + 2 * hidden * v.flag("use_qk_norm") + 2 * hidden  # and two scales
    layer = qkv + _linear(hidden, hidden) + _linear(hidden, ffn) + _linear(ffn, hidden) + norms
    image, patch = _side(v, "image_size", 448), _side(v, "patch_size", 14)
    positions = (image // patch) ** 2 + 1
    projector = 2 * 4 * hidden + _linear(4 * hidden, text_hidden) + _linear(text_hidden, text_hidden)
    embedding = _linear(3 * patch * patch, hidden) + hidden + positions * hidden
    return embedding + v.size("num_hidden_layers", default=24) * layer + projector


def _llama4(v: Fields, text_hidden: int) -> int:
    hidden, ffn = v.size("hidden_size", default=768), v.size("intermediate_size", default=5632)
    patch, image = v.size("patch_size", default=14), v.size("image_size", default=448)
    positions = (image // patch) ** 2 + 1
    inner, outer = v.size("projector_input_dim", default=4096), v.size("projector_output_dim", default=4096)
    adapter = _linear(ffn, inner, False) + _linear(outer, outer, False)
    projector = _linear(v.size("vision_output_dim", default=7680), text_hidden, False)
    layers = v.size("num_hidden_layers", default=34) * _encoder_layer(hidden, ffn)
    return _patches(v, hidden, False) + hidden + positions * hidden + 4 * hidden + layers + adapter + projector


def _gemma4(v: Fields, text_hidden: int) -> int:
    hidden, ffn, heads = v.size("hidden_size"), v.size("intermediate_size"), v.size("num_attention_heads")
    head, kv = v.size("head_dim", default=64), v.size("num_key_value_heads", default=heads)
    layer = 2 * hidden * head * (heads + kv) + 3 * hidden * ffn + 2 * head + 4 * hidden
    positions = 2 * v.size("position_embedding_size", default=10240) * hidden
    projector = hidden * text_hidden
    return _patches(v, hidden, False, patch=16) + positions + v.size("num_hidden_layers") * layer + projector


def _siglip(v: Fields, text_hidden: int) -> int:
    """Gemma 3: SigLIP without its head, an RMS norm and one matrix into the language model."""
    hidden, ffn = v.size("hidden_size"), v.size("intermediate_size")
    patch, image = v.size("patch_size", default=16), v.size("image_size", default=224)
    layers = v.size("num_hidden_layers") * _encoder_layer(hidden, ffn)
    positions = (image // patch) ** 2 * hidden
    # a pooling head (a query, attention, a feed-forward part, a norm) unless the config says no
    has_head = v.flag("vision_use_head", default=True)
    head = hidden + 4 * _linear(hidden, hidden) + _linear(hidden, ffn) + _linear(ffn, hidden) + 2 * hidden
    tower = _patches(v, hidden, True, patch=16) + positions + layers + 2 * hidden + head * has_head
    return tower + hidden + hidden * text_hidden


def _pixtral(v: Fields, text_hidden: int) -> int:
    """Mistral Small 3.1 and on: gated layers without biases, four patches merged, two matrices into the model."""
    hidden, ffn = v.size("hidden_size"), v.size("intermediate_size")
    layer = 4 * hidden * hidden + 3 * hidden * ffn + 2 * hidden
    merge = v.size("spatial_merge_size", default=2) ** 2 * hidden * hidden
    projector = hidden + merge + hidden * text_hidden + text_hidden * text_hidden
    layers = v.size("num_hidden_layers") * layer
    return _patches(v, hidden, False, patch=16) + hidden + layers + projector


def _moonvit(v: Fields, text_hidden: int) -> int:
    """Kimi-K2.5 and Kimi-VL: a learned grid of positions, four patches merged by the projector."""
    hidden = v.size("hidden_size", "vt_hidden_size", default=1152)
    ffn = v.size("intermediate_size", "vt_intermediate_size", default=4304)
    layers = v.size("num_hidden_layers", "vt_num_hidden_layers", default=27)
    rows, columns = (
        v.size("pos_emb_height", "init_pos_emb_height", default=64),
        v.size("pos_emb_width", "init_pos_emb_width", default=64),
    )
    merge = v.sizes("merge_kernel_size") or (2, 2)
    merged = hidden * merge[0] * merge[-1]
    projector = 2 * hidden + _linear(merged, merged) + _linear(merged, text_hidden)
    tower = _patches(v, hidden, True) + rows * columns * hidden + layers * _encoder_layer(hidden, ffn) + 2 * hidden
    return tower + projector


def _glm4v(v: Fields, text_hidden: int) -> int:
    """GLM-4.1V and 4.5V: gated layers as wide inside as the language model, four patches merged by a convolution and a
    gated part behind it."""
    hidden, ffn = v.size("hidden_size"), v.size("intermediate_size")
    out = v.size("out_hidden_size", default=text_hidden)
    positions = (v.size("image_size", default=336) // v.size("patch_size", default=14)) ** 2 * hidden
    layer = 4 * hidden * hidden + 3 * hidden * out + 2 * hidden
    merged = v.size("spatial_merge_size", default=2) ** 2 * hidden
    merger = _linear(merged, out) + out * out + 2 * out + 3 * out * ffn
    patches = _patches(v, hidden, True, v.size("temporal_patch_size", default=2))
    return patches + positions + 2 * hidden + v.size("depth") * layer + merger


def _glm5(v: Fields, text_hidden: int) -> int:
    """GLM-5-Next: gated layers, four patches merged by a convolution into the language model's width, and a gated part
    behind it."""
    hidden, ffn, heads = v.size("hidden_size"), v.size("intermediate_size"), v.size("num_heads", default=16)
    out, bias = v.size("out_hidden_size", default=text_hidden), v.flag("attention_bias", default=True)
    inner = v.size("projection_intermediate_size", default=3 * out)
    layer = 4 * _linear(hidden, hidden, bias) + 2 * _linear(hidden, ffn, bias) + _linear(ffn, hidden, bias)
    norms = 2 * hidden + 2 * (hidden // heads)
    merger = _linear(hidden * v.size("spatial_merge_size", default=2) ** 2, out) + out * out + 2 * out + 3 * out * inner
    patches = _patches(v, hidden, True, v.size("temporal_patch_size", default=2))
    return patches + v.size("depth") * (layer + norms) + hidden + merger


def _mllama(v: Fields, text_hidden: int) -> int:
    """Llama 3.2 Vision: local and gated global layers without biases in attention; positions of patches, of tiles, and
    of tiles before and after the layers, one set for each shape of picture."""
    hidden, ffn = v.size("hidden_size", default=1280), v.size("intermediate_size", default=5120)
    patch, size = v.size("patch_size", default=14), v.size("image_size", default=448)
    tiles = v.size("max_num_tiles", default=4) * hidden
    shapes = 1 + (len(v.items("supported_aspect_ratios")) or 8)
    places = (size // patch) ** 2 + 1
    positions = 1 + places * hidden + shapes * places * tiles + 2 * (shapes * tiles + 1)
    layer = 4 * hidden * hidden + _linear(hidden, ffn) + _linear(ffn, hidden) + 4 * hidden
    plain, gated = v.size("num_hidden_layers", default=32), v.size("num_global_layers", default=8)
    projector = _linear(v.size("vision_output_dim", default=7680), text_hidden)
    ends = _patches(v, hidden, False) + hidden + 4 * hidden
    return ends + positions + plain * layer + gated * (layer + 2) + projector


def _minimax(v: Fields, text_hidden: int) -> int:
    """MiniMax-M3: a CLIP tower on pairs of frames; two projections, before and after four patches are merged."""
    hidden, ffn = v.size("hidden_size"), v.size("intermediate_size")
    table = v.table("img_token_compression_config") or v
    frames = table.size("temporal_patch_size", default=2)
    merged = text_hidden * table.size("spatial_merge_size", default=2) ** 2
    layers = v.size("num_hidden_layers") * _encoder_layer(hidden, ffn)
    inner = v.size("projection_dim", default=text_hidden)
    first = _linear(hidden, inner) + _linear(inner, text_hidden)
    second = _linear(merged, inner) + _linear(inner, text_hidden)
    return _patches(v, hidden, False, frames) + 2 * hidden + layers + first + second


TOWERS: dict[str, Callable[[Fields, int], int]] = {
    "qwen3_vl": _qwen3,
    "qwen3_vl_moe": _qwen3,
    "qwen3_5": _qwen3,
    "qwen3_5_moe": _qwen3,
    "qwen4_exp": _qwen3,
    "cohere_compass": _qwen3,
    "qwen2_vl": _qwen2_vl,
    "qwen2_5_vl": _qwen2_5,
    "internvl": _internvit,
    "interns1": _internvit,
    "llama4": _llama4,
    "mllama": _mllama,
    "gemma4": _gemma4,
    "gemma3": _siglip,
    "mistral3": _pixtral,
    "kimi_k25": _moonvit,
    "kimi_vl": _moonvit,
    "glm4v": _glm4v,
    "glm4v_moe": _glm4v,
    "minimax_m3_vl": _minimax,
    "mistral_large4": _pixtral,
    "lighton_ocr": _pixtral,
    "glm46v": _glm4v,
    "glm5_next": _glm5,
    "glmga": _glm4v,
}
"""``model_type`` of the whole config -> how to count its tower."""


WIDTH = ("hidden_size", "embed_dim", "d_model", "width")
DEPTH = ("num_hidden_layers", "depth", "encoder_layers", "num_layers", "layers")
INNER = ("intermediate_size", "encoder_ffn_dim", "ffn_dim", "mlp_hidden_dim")
MELS = ("num_mel_bins", "num_mels", "mel_bins", "input_dim")
TAPS = 3
"""Inputs that one output of the two convolutions in front of an audio tower sees, as in Whisper [radford-2022]."""


def _ordinary(t: Fields, text_hidden: int) -> int:
    """A tower of a kind that is not listed: an ordinary encoder of its sizes and a two-matrix projector; 0 where the
    config does not state them."""
    hidden, layers = t.count(*WIDTH), t.count(*DEPTH)
    if not hidden or not layers:
        return 0
    ffn = t.count(*INNER) or int(hidden * t.number("mlp_ratio", default=4.0))
    merged = hidden * t.size("spatial_merge_size", default=1) ** 2
    projector = _linear(merged, text_hidden) + _linear(text_hidden, text_hidden)
    first = _sound(t, hidden) if any(key in t for key in MELS) else _patches(t, hidden, True)
    return first + layers * _encoder_layer(hidden, ffn) + projector


def _sound(t: Fields, hidden: int) -> int:
    """Two convolutions over mel bins and a position for every second frame of 30 s."""
    return _linear(TAPS * t.size(*MELS), hidden) + _linear(TAPS * hidden, hidden)


KINDS = {"vision_config": "vision", "audio_config": "audio", "encoder_config": "audio"}
"""Tables of a config that describe a tower -> its name."""


def tower_parameters(outer: Fields, text_hidden: int) -> tuple[int, str]:
    """(parameters of towers and projectors, what is not known of them)."""
    family, total = outer.word("model_type"), 0
    unknown: list[str] = []
    outer = outer.table("thinker_config") or outer
    for table, kind in KINDS.items():
        tower = outer.table(table)
        if tower is None:
            continue
        if kind == "vision" and family in TOWERS:
            total += TOWERS[family](tower, text_hidden)
            continue
        count = _ordinary(tower, text_hidden)
        total += count
        how = "is counted as an ordinary encoder of its sizes" if count else "is not counted"
        unknown.append(f"the {kind} tower of {family!r} {how}: its layers are not known here")
    return total, "; ".join(unknown)

"""Fields that a family's reader did not ask for, though they tell of the kind, the size or the cache of layers."""

from orrery.models.fields import Fields
from orrery.models.generic import EXPERTS, SHARED, WIDE

SHAPING = (
    "cross_attention",
    "expert",
    "index_",
    "layer_types",
    "linear_",
    "loop",
    "lora_rank",
    "mamba",
    "moe",
    "mtp",
    "nextn",
    "num_kv_shared",
    "per_layer",
    "sliding",
)
"""Parts of the names of fields by which layers differ."""

HOW = (
    "_fn",
    "_norm",
    "a_log",
    "act",
    "backend",
    "bound",
    "cache",
    "chunk_size",
    "coef",
    "combine",
    "dt_",
    "dtype",
    "expert_sink",
    "factor",
    "group",
    "impl",
    "index_local",
    "init",
    "kernels",
    "loss",
    "mamba_d_head",
    "neg_eigval",
    "norm_",
    "overlap",
    "per_layer_input",
    "prob",
    "renormalize",
    "scal",
    "select",
    "strategy",
    "token_id",
    "tp_",
)
"""Parts of the names of fields that say how a layer computes, not what it is made of."""

WIDTHS = (*WIDE, "share_expert_dims", "moe_shared_expert_intermediate_size")
"""Where a width of what all tokens pass is stated, the number of shared experts is not needed."""

MOST = 8
"""Fields that a note names."""


def unread(c: Fields) -> str:
    """The note that names such fields; empty where there are none."""
    left = [key for key, value in c.data.items() if value and key not in c.reads and _shapes(c, key)]
    return f"not read, and may change the answer: {', '.join(sorted(left)[:MOST])}" if left else ""


def _shapes(c: Fields, key: str) -> bool:
    """Whether a field may change what layers are made of, given what else the config says."""
    if key.startswith("_") or any(word in key for word in HOW) or not any(word in key for word in SHAPING):
        return False
    stated = c.data.keys()
    if key.endswith("intermediate_size") and c.data[key] == c.data.get("intermediate_size"):
        return False
    if key in SHARED and any(width in stated for width in WIDTHS):
        return False
    if c.data.get("use_sliding_window") is False and ("sliding" in key or key == "layer_types"):
        return False
    counts = [c.data.get(name) for name in EXPERTS if name in stated]
    return not ("expert" in key or "moe" in key) or counts != [1]

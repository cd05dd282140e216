"""Blocks that may stand in for a decoder layer: fewer key/value heads or none, a narrower feed-forward part or none.

A variant is costed where it is used: parameters and cache from the model that has it in every layer, and the time of a
decode step likewise, less what is no layer's (embedding, head, sampling). Its damage is a stand-in for a measured
score: the squared share that it leaves out, of the key/value heads and of the feed-forward width.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from orrery.execution.layout import Deployment
from orrery.execution.shard import cache_of, shard
from orrery.models.config import parse
from orrery.models.model import Model, SoftmaxAttention
from orrery.serving.clock import steps_of, tick

KV_SHARES = (1.0, 1 / 2, 1 / 4, 1 / 8, 0.0)
FFN_SHARES = (1.0, 0.87, 0.75, 0.5, 0.25, 0.2, 0.1, 0.0)
"""Alternatives of one layer; 0 leaves the part out. Bercovich et al. (arXiv 2411.19146) search about these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One block: key/value heads and feed-forward width, 0 where the part is left out."""

    kv_share_frac: float
    ffn_share_frac: float

    @property
    def damage_ratio(self) -> float:
        """Squared share of the heads and of the width that are gone."""
        return (1.0 - self.kv_share_frac) ** 2 + (1.0 - self.ffn_share_frac) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCost:
    """One layer of a variant on one device."""

    variant: Variant
    num_parameters: float
    weight_bytes: float
    cache_bytes: float  # of one cached token
    step_s: float  # of a decode step


def variants() -> tuple[Variant, ...]:
    """Every attention with every feed-forward part."""
    return tuple(Variant(kv_share_frac=kv, ffn_share_frac=ffn) for kv in KV_SHARES for ffn in FFN_SHARES)


def rebuilt(parent: Model, layers: Sequence[Variant], name: str) -> Model:
    """The parent with those layers, as its published relatives write it: a config of block after block."""
    (block,) = parent.blocks
    mixer = block.mixer
    assert isinstance(mixer, SoftmaxAttention)
    multiple = 1.5 * block.activation_elements / parent.hidden_size
    config = {
        "model_type": "nemotron-nas",
        "hidden_size": parent.hidden_size,
        "num_attention_heads": mixer.num_heads,
        "num_hidden_layers": len(layers),
        "head_dim": mixer.head_size,
        "vocab_size": parent.vocab_size,
        "tie_word_embeddings": parent.is_head_tied,
        "max_position_embeddings": parent.max_context_tokens,
        "block_configs": [_entry(x, mixer, multiple) for x in layers],
    }
    return parse(config, name=name)


def costs(deployment: Deployment, sequences: float, context_tokens: float) -> tuple[BlockCost, ...]:
    """Every variant of the deployment's model, in a decode step of so many sequences; its two parts add up."""
    mixers = {
        kv: _part(deployment, Variant(kv_share_frac=kv, ffn_share_frac=0.0), sequences, context_tokens)
        for kv in KV_SHARES
    }
    feeds = {
        ffn: _part(deployment, Variant(kv_share_frac=0.0, ffn_share_frac=ffn), sequences, context_tokens)
        for ffn in FFN_SHARES
    }
    return tuple(_joined(v, mixers[v.kv_share_frac], feeds[v.ffn_share_frac], mixers[0.0]) for v in variants())


def _part(deployment: Deployment, variant: Variant, sequences: float, context_tokens: float) -> BlockCost:
    """A layer of a model of nothing else, with its share of what is no layer's."""
    layers = deployment.model.num_layers
    whole = replace(deployment, model=rebuilt(deployment.model, (variant,) * layers, "blocks"))
    step = steps_of(0.0, 0.0, 0.0, np.array([sequences]), context_tokens)
    return BlockCost(
        variant=variant,
        num_parameters=whole.model.num_parameters / layers,
        weight_bytes=shard(whole).weight_bytes / layers,
        cache_bytes=cache_of(whole).bytes_per_token / layers,
        step_s=float(tick(whole, step).done.time_s[0]) / layers,
    )


def _joined(variant: Variant, mixer: BlockCost, feed: BlockCost, empty: BlockCost) -> BlockCost:
    """Both parts, each without what an empty model costs."""
    return BlockCost(
        variant=variant,
        num_parameters=mixer.num_parameters + feed.num_parameters - 2 * empty.num_parameters,
        weight_bytes=mixer.weight_bytes + feed.weight_bytes - 2 * empty.weight_bytes,
        cache_bytes=mixer.cache_bytes,
        step_s=mixer.step_s + feed.step_s - 2 * empty.step_s,
    )


def _entry(variant: Variant, mixer: SoftmaxAttention, multiple: float) -> dict[str, dict[str, object]]:
    heads = round(mixer.num_kv_heads * variant.kv_share_frac)
    attention: dict[str, object] = {"n_heads_in_group": mixer.num_heads // heads} if heads else {"no_op": True}
    ffn: dict[str, object] = (
        {"ffn_mult": multiple * variant.ffn_share_frac} if variant.ffn_share_frac else {"no_op": True}
    )
    return {"attention": attention, "ffn": ffn}

"""Parts of a layer that are recomputed by name, as Megatron's --recompute-modules has them: what each saves and costs.

A recomputed module keeps its input and makes the rest again. ``core_attn`` drops the softmax (scores, or row sums),
``moe_act`` what leaves the activation of routed experts, ``layernorm`` what leaves both norms, ``mla_up_proj`` the
queries, keys and values that latent vectors expand to, ``mlp``, ``moe`` and ``shared_experts`` all that lies between
the input of a feed-forward part and its output. [korthikanti-2022]
"""

import re
from collections.abc import Iterable

from orrery.base.errors import ScenarioError
from orrery.models.model import LatentAttention, Model

MODULES = ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts")
"""In the order of their bits."""

ALIASES = {"attention": "core_attn", "attn": "core_attn", "activation": "moe_act", "norm": "layernorm"}

INSIDE = {"moe": ("moe_act", "shared_experts")}
"""Submodules of a module: recomputed with it."""


def mask_of(modules: Iterable[str]) -> int:
    """One bit a module; what lies inside another one that is recomputed counts once."""
    names = set(modules)
    names -= {part for whole, parts in INSIDE.items() if whole in names for part in parts}
    return sum(1 << MODULES.index(name) for name in names)


def modules_of(mask: int) -> tuple[str, ...]:
    """The names behind a mask."""
    return tuple(name for bit, name in enumerate(MODULES) if mask >> bit & 1)


def read_modules(text: str) -> tuple[str, ...]:
    """``attention,mlp`` as names of modules, in their order; refuses what is none."""
    words = [w for w in re.split(r"[,;+\s]+", text.casefold()) if w]
    names = [ALIASES.get(w, w) for w in words]
    if unknown := [w for w, n in zip(words, names, strict=True) if n not in MODULES]:
        raise ScenarioError(
            f"recompute: {', '.join(unknown)} is no part of a layer; write none, selective, full, or some of "
            f"{', '.join(MODULES)}."
        )
    return tuple(name for name in MODULES if name in names)


def modules_in(model: Model) -> tuple[str, ...]:
    """The named modules that the model's layers have."""
    blocks = model.blocks
    has = {
        "moe_act": any(b.experts for b in blocks),
        "moe": any(b.experts for b in blocks),
        "mla_up_proj": any(isinstance(b.mixer, LatentAttention) for b in blocks),
        "mlp": any(x.role == "mlp" for b in blocks for x in b.linears),
        "shared_experts": any(x.role == "shared_expert" for b in blocks for x in b.linears),
    }
    return tuple(name for name in MODULES if has.get(name, True))


def check_modules(model: Model, modules: Iterable[str]) -> None:
    """Refuse to recompute what no layer of the model has."""
    left = modules_in(model)
    if shortfall := [name for name in modules if name not in left]:
        raise ScenarioError(
            f"recompute: {model.name} has no {', '.join(shortfall)}; write some of {', '.join(left)}, or full."
        )

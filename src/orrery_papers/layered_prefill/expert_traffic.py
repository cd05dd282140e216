"""Bytes of expert weights that a run reads: distinct experts of every layer and step, from the tokens of each step.

A layer with T tokens reads the experts that any of them picks, ``distinct(T)``, each once. Under layered prefill a
step of a prompt in G groups carries the prompt through L / G layers and answers only through the others.
"""

import numpy as np

from orrery.execution.layout import Deployment
from orrery.execution.shard import shard
from orrery.execution.step import EXPERT_LOADS
from orrery.kernels.moe.rule import loads
from orrery.kernels.ops import MoE
from orrery.serving.requests import Floats
from orrery.serving.simulation.result import STEP, Simulated


def distinct_experts(deployment: Deployment, tokens: Floats) -> Floats:
    """Experts of a layer that so many tokens touch, by the routing that steps are costed with; 0 for no tokens."""
    e = next(x.experts for x in shard(deployment).experts)
    op = MoE(
        tokens=np.maximum(tokens, 1.0),
        hidden_size=e.hidden_size,
        ffn_size=e.ffn_size,
        num_experts=e.num_experts,
        experts_per_token=e.experts_per_token,
        format="bf16",
        tp=1,
        ep=1,
        is_gated=e.is_gated,
        popularity=deployment.expert_loads or EXPERT_LOADS,
    )
    return np.where(tokens > 0, np.minimum(loads(op)[1], e.num_experts), 0.0)


def expert_bytes(run: Simulated, deployment: Deployment, *, by_layers: bool = False) -> float:
    """Bytes of experts' weights read in the logged steps of a run, over all devices and layers.

    ``by_layers``: under layered prefill, whose log says for each step the prompt's tokens over its groups of layers.
    """
    experts = shard(deployment).experts
    all_bytes = sum(x.weight_bytes * x.count * x.tp * x.ep / x.experts.num_experts for x in experts)
    prompt, decode = (run.step_log[:, STEP.index(f"{what}_tokens")] for what in ("prompt", "decode"))
    groups = _groups(prompt) if by_layers else np.ones_like(prompt)
    together, alone = distinct_experts(deployment, prompt * groups + decode), distinct_experts(deployment, decode)
    return float(all_bytes * (together / groups + alone * (1.0 - 1.0 / groups)).sum())


def _groups(prompt: Floats) -> Floats:
    """How many steps in a row carry the same prompt: its groups of layers; 1 where there is none.

    >>> _groups(np.array([0.0, 0.0, 500.0, 500.0, 480.0])).tolist()
    [1.0, 1.0, 2.0, 2.0, 1.0]
    """
    if not prompt.size:
        return prompt
    starts = np.flatnonzero(np.concatenate([[True], prompt[1:] != prompt[:-1]]))
    lengths = np.diff(np.concatenate([starts, [prompt.size]]))
    return np.where(prompt > 0, np.repeat(lengths, lengths), 1).astype(np.float64)

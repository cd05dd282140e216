"""Passes of fine-tuning tokens beside requests, priced alone: attention among the tokens of a sequence is left out."""

import numpy as np

from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.layout import Deployment
from orrery.execution.step import step


def pass_s(deployment: Deployment, tokens: Ints) -> Floats:
    """Time of a forward pass of so many tokens, without attention."""
    none = np.zeros_like(tokens)
    batch = Batch(
        prompt_sequences=none + 1,
        prompt_tokens=tokens,
        prompt_context_tokens=tokens,
        decode_sequences=none,
        decode_context_tokens=none,
    )
    parts = step(deployment, batch).parts
    return np.sum([part.time_s for part in parts if not part.name.startswith("attention")], axis=0)


def layer_back_s(deployment: Deployment, sequence_tokens: int, pass_ratio: float) -> float:
    """Time of one layer's backward pass over a whole sequence; base weights are frozen."""
    whole_s = float(pass_s(deployment, np.array([sequence_tokens]))[0])
    return (pass_ratio - 1.0) * whole_s / deployment.model.num_layers

"""A small model that samples against a large one that answers once, at the same operations over their whole lives.

Training takes 6 and an answer 2 operations a parameter and token. With r = answer tokens over training tokens, a model
``size_ratio`` = m times larger that answers once costs as much as the small one with k samples where
6 m + 2 m r = 6 + 2 k r, so k = m + 3 (m - 1) / r. [snell-2024-test-time-compute]
"""

from orrery.base.errors import ScenarioError
from orrery.models.model import Model
from orrery.reasoning.graph import Graph


def matched_samples(size_ratio: float, answered_ratio: float) -> float:
    """Samples that the small model may draw; ``answered_ratio``: tokens answered over tokens trained on."""
    _check(answered_ratio)
    return size_ratio + 3.0 * (size_ratio - 1.0) / answered_ratio


def matched_size_ratio(num_samples: float, answered_ratio: float) -> float:
    """How many times larger the model is that costs as much, answering once."""
    _check(answered_ratio)
    return (num_samples + 3.0 / answered_ratio) / (1.0 + 3.0 / answered_ratio)


def answer_flops(graph: Graph, models: dict[str, Model]) -> float:
    """Operations of a graph's parameters: 2 a parameter and token, written or read, by the model of each call.

    Calls of a model that is not listed are left out.
    """
    return sum(
        2.0 * model.num_active_parameters * (call.written_tokens + call.fresh_tokens)
        for name, model in models.items()
        for call in graph.of(name)
    )


def _check(answered_ratio: float) -> None:
    if answered_ratio <= 0:
        raise ScenarioError(f"answered_ratio = {answered_ratio:g}; write tokens answered over tokens trained on, > 0.")

"""Operations of many answers of a small model, to be held against those of a large one that answers once."""

from orrery.models.model import Model
from orrery.reasoning.graph import Graph


def answer_flops(graph: Graph, models: dict[str, Model]) -> float:
    """Operations of a graph's parameters: 2 a parameter and token, written or read, by the model of each call.

    Calls of a model that is not listed are left out.
    """
    return sum(
        2.0 * model.num_active_parameters * (call.written_tokens + call.fresh_tokens)
        for name, model in models.items()
        for call in graph.of(name)
    )

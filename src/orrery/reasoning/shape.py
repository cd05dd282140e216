"""From a question to its calls: the shapes at the seam ``reasoning.shape``, one file each under ``techniques``."""

from orrery.base.seam import technique_at
from orrery.reasoning import techniques
from orrery.reasoning.graph import Graph, Problem

SEAM = "reasoning.shape"


def graph_of(shape: str, problem: Problem, **knobs: float) -> Graph:
    """The graph of ``problem`` under the shape of that name, ``knobs`` in place of its defaults."""
    technique = technique_at(techniques, SEAM, shape)
    return Graph(calls=tuple(technique.rule(problem, technique.knobs(**knobs))))

"""From a question to its calls: the shapes at ``reasoning.shape``, one file each under ``techniques``."""

from orrery.base.extension_points import ExtensionPoint
from orrery.base.technique import Technique
from orrery.reasoning import techniques
from orrery.reasoning.choice import ShapeKnobs
from orrery.reasoning.graph import Graph, Problem

SHAPES = ExtensionPoint(name="reasoning.shape", folder=techniques, noun="reasoning shape")


def drawn(shape: Technique, problem: Problem, knobs: ShapeKnobs) -> Graph:
    """The graph of ``problem`` under a shape."""
    return Graph(calls=tuple(shape.rule(problem, knobs)))


def graph_of(shape: str, problem: Problem, **knobs: float | str) -> Graph:
    """The same by name, ``knobs`` in place of the shape's defaults."""
    found = SHAPES.get(shape)
    return drawn(found, problem, found.knobs(**knobs))

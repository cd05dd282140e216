"""Gradients and messages until nodes of a graph agree on the solution: two clocks against rounds."""

from dataclasses import dataclass
from itertools import combinations, pairwise
from math import isfinite, nan

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.fleet.decentral.decoupled import Counted, Edges, chis, decoupled, quadratics, tracking

GRAPHS = ("ring", "path", "complete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated numbers of nodes and condition numbers; the graph; features; the error that is asked for."""

    nodes: str = "4,8,16"
    condition: str = "10,100"
    graph: str = "ring"
    features: int = 8
    target_frac: float = 1e-3


def run(request: Run) -> tuple[Row, ...]:
    """A row a method, number of nodes and condition number: what each node computes and sends, where it gets there.

    The graph's condition is chi1 chi2 where as many edges are drawn in a unit of time as nodes make pairs.
    """
    sizes: Sizes = request.sizes
    many = [whole("nodes", int(n), least=3, most=64) for n in numbers("nodes", sizes.nodes, least=3)]
    conditions = numbers("condition", sizes.condition, least=1.0, most=1e4)
    features = whole("features", sizes.features, least=2, most=200)
    if sizes.graph not in GRAPHS or not 0.0 < sizes.target_frac < 1.0:
        raise ScenarioError(f"set: write graph as {', '.join(GRAPHS)}, and target_frac between 0 and 1.")
    tick = counter(request.progress, len(many) * len(conditions))
    rows: list[Row] = []
    for count in many:
        edges = edges_of(sizes.graph, count)
        for condition in conditions:
            of = quadratics(count, features, condition, request.seed)
            target = {"target_frac": sizes.target_frac}
            clocks = decoupled(of, edges, most_time=float(request.steps), seed=request.seed, **target)
            rounds = tracking(of, edges, most_rounds=request.steps, **target)
            found = {"two clocks": clocks, "rounds": rounds}
            rows += [_row(method, count, condition, edges, done) for method, done in found.items()]
            tick()
    return tuple(rows)


def edges_of(graph: str, num_nodes: int) -> Edges:
    """Pairs of neighbours."""
    if graph == "complete":
        return list(combinations(range(num_nodes), 2))
    path = list(pairwise(range(num_nodes)))
    return [*path, (num_nodes - 1, 0)] if graph == "ring" else path


def _row(method: str, count: int, condition: float, edges: Edges, done: Counted) -> Row:
    chi1, chi2 = chis(edges, count)
    return {
        "method": method,
        "nodes": count,
        "condition": condition,
        "graph_condition": chi1 * chi2 * (2.0 / count) ** 2,
        "gradients_per_node": _known(done.num_gradients / count),
        "messages_per_node": _known(done.num_messages / count),
    }


def _known(count: float) -> float:
    """Not a number where the error never was small enough."""
    return count if isfinite(count) else nan


EXPERIMENT = Experiment(
    name="decoupled-descent",
    question="How many gradients and messages do nodes need whose clocks are not tied to each other?",
    run=run,
    num_steps=4000,
    claims=("dadao",),
    sizes=Sizes,
    keys=("method", "nodes", "condition"),
    curve=("condition", "gradients_per_node"),
)

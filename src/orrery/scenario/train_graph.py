"""Full-graph training: an epoch on the user's graph, shared out by vertices, by layers, or by both."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.scenario.answer import to_json
from orrery.scenario.resolve import one_device
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.show import Table
from orrery.scenario.train_with.number_file import numbers_of
from orrery.training.graphs.epoch import Devices, Epoch, epoch
from orrery.training.graphs.graph import Graph, Ints, from_pairs, planted_graph
from orrery.training.graphs.partition import partition
from orrery.training.graphs.volume import GraphModel, Volume, enlarged, parts_of, volume

WORK = {"gcn": (1, 2, False), "graphsage": (2, 2, False), "gcnii": (1, 3, True), "resgcn": (1, 4, False)}
"""Products and passes over the rows of a layer, and whether it reads the first layer too: GraphSAGE multiplies itself
and its neighbours apart, GCNII adds two residuals, ResGCN norms and adds."""

DEFAULTS: Mapping[str, Any] = {"graph_model": "gcn", "graph_layers": 32, "graph_hidden": 256, "graph_chunks": 8}
COMMUNITY_VERTICES, INSIDE_FRAC = 1000, 0.5
MAX_DRAWN_EDGES, MAX_DRAWN_VERTICES = 1_000_000, 20_000
"""Limits of a drawn graph: a larger one is drawn smaller, of the same mean degree, and its parts are enlarged."""

WRITE = "an edge a line, two whole numbers of vertices between a comma; or planted:VERTICES:DEGREE"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphAnswer:
    """An epoch of full-graph training."""

    graph_parallel: str
    epoch: Epoch
    volume: Volume
    num_vertices: int
    num_edges: int  # directed: messages of one layer
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the question, as a scenario file has it

    @property
    def epoch_s(self) -> float:
        """Seconds of an epoch."""
        return self.epoch.time_s

    @property
    def parts(self) -> dict[str, float]:
        """Where the seconds go; they add up to the epoch."""
        e = self.epoch
        return {"compute": e.compute_s, "exchange between parts": e.exchange_s, "idle": max(0.0, e.idle_s)}

    def table(self, kind: str) -> tuple[Mapping[str, Any], ...]:
        """Rows of a table."""
        return next(t.rows for t in self.tables if t.kind == kind)

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        return to_json(
            {
                "graph_parallel": self.graph_parallel,
                "epoch_s": self.epoch_s,
                "parts": self.parts,
                "sent_bytes": self.volume.total_bytes,
                "num_vertices": self.num_vertices,
                "num_edges": self.num_edges,
                "techniques": {t.kind: t.rows for t in self.tables},
                "settings": self.settings,
                "notes": self.notes,
            }
        )


@typed
def train_graph(scenario: Scenario | None = None, /, **settings: Any) -> GraphAnswer:
    """An epoch of full-graph training on the devices, by each way of sharing it that is possible.

    Settings are those of a scenario file. Raises ScenarioError where the requested way does not come out.
    """
    inputs = merged(scenario, settings)
    refuse_foreign("train", settings)
    return replace(_answered(inputs), settings=inputs.written())


def _answered(scenario: Scenario) -> GraphAnswer:
    if scenario.graph is None or scenario.devices is None:
        missing = "graph" if scenario.graph is None else "devices"
        raise ScenarioError(f"{missing}: is missing; write it for training on a whole graph.")
    device, count = get_device(one_device(scenario)), scenario.devices
    given = {name: getattr(scenario, name) for name in DEFAULTS}
    notes = [f"{name}: {value} (default)" for name, value in DEFAULTS.items() if given[name] is None]
    chosen = {name: DEFAULTS[name] if value is None else value for name, value in given.items()}
    products, passes, reads_first = WORK[chosen["graph_model"]]
    model = GraphModel(
        name=chosen["graph_model"],
        num_layers=chosen["graph_layers"],
        hidden_size=chosen["graph_hidden"],
        num_products=products,
        num_elementwise=passes,
        passes_first=reads_first,
    )
    graph, size = graph_of(scenario)
    if size:
        notes.append(
            f"graph: {graph.num_vertices:,} vertices of the same mean degree were cut, their parts enlarged to {size:,}"
        )
    devices = Devices(device=device, devices_per_node=scenario.devices_per_node or device.devices_per_node)
    ways, found = _ways(scenario, count), dict[str, tuple[Epoch, Volume, float]]()
    requested = scenario.graph_parallel
    for name, num_parts in ways.items():
        stages = count // num_parts
        if count % num_parts or model.num_layers % stages or num_parts > graph.num_vertices:
            if name == requested:
                raise ScenarioError(
                    f"graph_parallel: {name} has {stages} stages of {num_parts} parts for {count} devices and "
                    f"{model.num_layers} layers; write graph_layers that the stages divide, or other devices."
                )
            continue
        parts = parts_of(graph, _cut(graph, num_parts, scenario.seed or 0))
        if size:
            parts = enlarged(parts, size, round(graph.num_edges * size / graph.num_vertices))
        chunks = chosen["graph_chunks"] if stages > 1 else 1
        timed = epoch(parts, model, devices, num_stages=stages, num_chunks=chunks)
        found[name] = timed, volume(parts, model, stages), parts.copies_ratio
    if requested is not None and requested not in found:
        raise ScenarioError("graph_parts: is missing; a hybrid has as many parts of the graph in each stage.")
    best = requested or min(found, key=lambda name: found[name][0].time_s)
    if requested is None:
        notes.append(f"graph_parallel: {best} (the fastest)")
    rows = tuple(_row(name, *one) for name, one in found.items())
    return GraphAnswer(
        graph_parallel=best,
        epoch=found[best][0],
        volume=found[best][1],
        num_vertices=size or graph.num_vertices,
        num_edges=round(graph.num_edges * (size or graph.num_vertices) / graph.num_vertices),
        tables=(Table(kind="graph", title="Ways to share the graph", rows=rows),),
        notes=tuple(notes),
    )


def _ways(scenario: Scenario, count: int) -> dict[str, int]:
    """Parts of the graph in each way."""
    ways = {"vertices": count, "pipeline": 1}
    return ways | ({"hybrid": scenario.graph_parts} if scenario.graph_parts else {})


def graph_of(scenario: Scenario) -> tuple[Graph, int]:
    """The user's edges, or a drawn graph with communities; and the vertices that a smaller one stands for, or 0."""
    word = str(scenario.graph)
    if word.casefold().startswith("planted:"):
        try:
            _, vertices, degree = word.split(":")
            count, mean = int(vertices), float(degree)
        except ValueError:
            raise ScenarioError(f"graph: got {word!r}; write {WRITE}.") from None
        if not 2 <= count <= 1_000_000_000 or not 0.0 < mean <= 10_000.0:
            raise ScenarioError(f"graph: got {word!r}; write 2 to 1,000,000,000 vertices and a degree up to 10,000.")
        drawn = max(2, min(count, MAX_DRAWN_VERTICES, round(MAX_DRAWN_EDGES / mean)))
        return _planted(drawn, mean, scenario.seed or 0), count if drawn < count else 0
    edges = numbers_of(word, "graph", WRITE, takes_zero=True)
    if edges.shape[1] != 2 or (edges != np.rint(edges)).any():
        raise ScenarioError(f"graph: {word}: has {edges.shape[1]} columns; write {WRITE}.")
    names, ends = np.unique(edges.astype(np.int64), return_inverse=True)
    pairs = ends.reshape(edges.shape)
    return from_pairs(len(names), pairs[:, 0], pairs[:, 1]), 0


@lru_cache(maxsize=4)
def _planted(count: int, mean: float, seed: int) -> Graph:
    communities = max(2, count // COMMUNITY_VERTICES)
    return planted_graph(count, mean, num_communities=communities, inside_frac=INSIDE_FRAC, seed=seed)


@lru_cache(maxsize=12)
def _cut(graph: Graph, num_parts: int, seed: int) -> Ints:
    return partition(graph, num_parts, seed=seed)


def _row(name: str, timed: Epoch, sent: Volume, copies: float) -> dict[str, Any]:
    return {
        "graph_parallel": name,
        "epoch_s": timed.time_s,
        "compute_s": timed.compute_s,
        "exchange_s": timed.exchange_s,
        "send_s": timed.send_s,
        "idle_s": max(0.0, timed.idle_s),
        "sent_bytes": sent.total_bytes,
        "copies_ratio": copies,
    }

"""GNNPipe: volumes and epochs on synthetic graphs of the paper's sizes, by parts, by layers, and by both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.train_graph import train_graph

MODELS = ("gcn", "graphsage", "gcnii", "resgcn")

BECAUSE = {
    "epoch_time_speedup": "graph parallelism over the faster of pipeline and hybrid, from volumes, links and kernels",
    "communication_volume_reduction": "boundary rows of every layer over the matrices at the borders of stages",
    "communication_overhead_reduction": "time of everything sent by parts, over that of the faster mode",
}

SYNTHETIC = (
    "the graphs are synthetic: half of the edges leave a community, so that vertices have more copies than in the "
    "real graphs under a stronger partitioner"
)
DIFFERS = {
    "epoch_time_speedup": f"{SYNTHETIC}; and sparse products of the real system are slower than their memory roof",
    "communication_volume_reduction": SYNTHETIC,
    "communication_overhead_reduction": "what counts as overhead is not written; parts exchange their boundaries at "
    "the rate of measured collectives here, and real ones gather rows and send unequal messages",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One model on one graph: parts of the graph against the faster of pipeline and hybrid."""

    volume_ratio: float
    speedup_ratio: float
    communication_ratio: float


READ = {
    "epoch_time_speedup": "speedup_ratio",
    "communication_volume_reduction": "volume_ratio",
    "communication_overhead_reduction": "communication_ratio",
}


def predict(paper: Paper) -> Iterator[Prediction]:
    """The largest and the mean of every reduction, and how the volume's follows the depth."""
    runs = [run(setup, name) for setup in paper.setups.values() for name in MODELS]
    for claim in paper.claims:
        if claim.id == "volume-factor":
            yield Prediction(
                claim=claim.id,
                predicted=reduction(claim.setup, 128) / reduction(claim.setup, 8),
                because="parts exchange in every layer, stages only at their borders: 16 times the layers",
            )
        else:
            yield Prediction(
                claim=claim.id,
                predicted=_read(claim, runs),
                because=BECAUSE[claim.metric],
                differs=DIFFERS[claim.metric],
            )


def _read(claim: Claim, runs: list[Run]) -> float:
    values = [float(getattr(one, READ[claim.metric])) for one in runs]
    return max(values) if claim.reading == "up to" else float(np.mean(values))


def reduction(setup: Setup, num_layers: int) -> float:
    """Volume of parts over that of stages, one of each a device."""
    found = modes(setup, "gcn", num_layers)
    return found["vertices"]["sent_bytes"] / found["pipeline"]["sent_bytes"]


def run(setup: Setup, name: str) -> Run:
    """One model on one graph."""
    found = modes(setup, name)
    graph, ours = found["vertices"], min((found["pipeline"], found["hybrid"]), key=lambda row: row["epoch_s"])
    return Run(
        volume_ratio=graph["sent_bytes"] / ours["sent_bytes"],
        speedup_ratio=graph["epoch_s"] / ours["epoch_s"],
        communication_ratio=_sent_s(graph) / _sent_s(ours),
    )


def _sent_s(row: Mapping[str, Any]) -> float:
    """All that is sent, hidden or not."""
    return row["exchange_s"] + row["send_s"]


def modes(setup: Setup, name: str, num_layers: int = 0) -> Mapping[str, Mapping[str, Any]]:
    """``orrery train --graph`` on a drawn graph of the set-up's size, by way of sharing it."""
    vertices, edges = setup.number("num_vertices"), setup.number("num_edges")
    return _modes(
        device=setup.word("device"),
        devices=int(setup.number("num_devices")),
        devices_per_node=int(setup.number("num_devices_per_node")),
        graph=f"planted:{vertices:.0f}:{edges / vertices!r}",
        graph_model=name,
        graph_layers=num_layers or int(setup.number("num_layers")),
        graph_hidden=int(setup.number("num_hidden")),
        graph_parts=int(setup.number("num_graph_parts")),
        graph_chunks=int(setup.number("num_chunks")),
    )


@cache
def _modes(**settings: Any) -> Mapping[str, Mapping[str, Any]]:
    return {row["graph_parallel"]: row for row in train_graph(**settings).table("graph")}

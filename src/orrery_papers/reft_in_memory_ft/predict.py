"""REFT: snapshots in host memory, shared out among replicas, against one replica that saves for all."""

from collections.abc import Iterator, Mapping
from typing import Any

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.trained_by import settings_of, trained

NODE_MTBF_S = 1e7
"""Nodes must fail for a run to save; how often does not enter what is compared."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """How much sooner a save is in host memory, and what it stops on the large machine."""
    testbed = ways(paper.setups["testbed"])
    yield Prediction(
        claim="saving-speedup",
        predicted=testbed["snapshot"]["copy_s"] / testbed["in-memory"]["copy_s"],
        because="every replica's own link copies its share, against one link for all",
        differs="as many times faster as there are replicas, each with a link of its own; shared links make it less",
    )
    in_memory = ways(paper.setups["frontier"])["in-memory"]
    yield Prediction(
        claim="saving-overhead",
        predicted=in_memory["checkpoint_frac"],
        because="the copy of a replica's share ends within forward and backward",
        differs="what the copies take of host memory from the step itself is not modelled",
    )


def ways(s: Setup) -> Mapping[str, Mapping[str, Any]]:
    """``orrery train --checkpoint in-memory``: every way of saving, by name."""
    found = trained(
        **settings_of(
            s,
            recompute="full",
            framework="megatron-lm",
            train_tokens=1e11,
            node_mtbf_s=NODE_MTBF_S,
            checkpoint="in-memory",
            host_memory_bytes_per_s=s.number("host_memory_bytes_per_s") or None,
        )
    )
    return {row["checkpoint"]: row for row in found.table("checkpoints")}

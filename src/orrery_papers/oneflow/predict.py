"""OneFlow: the states of a placement, and the bytes that turn one into another."""

from collections.abc import Iterator, Mapping
from typing import Any

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.trained_by import trained

CHANGES = {
    "split-to-broadcast": "S(0) to B",
    "partial-to-split": "P to S(0)",
    "partial-to-broadcast": "P to B",
    "split-to-split": "S(0) to S(1)",
    "broadcast-to-split": "B to S(0)",
}
"""Changes of state, by the claim about them."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """The number of states, and what each change of state sends."""
    for claim in paper.claims:
        if claim.id != "states" and claim.id not in CHANGES:
            continue
        rows = conversions(claim.setup)
        if claim.id == "states":
            states = {state[0] for change in rows for state in change.split(" to ")}
            yield Prediction(
                claim=claim.id, predicted=float(len(states)), because="states that every operator is cut with"
            )
        else:
            yield Prediction(
                claim=claim.id,
                predicted=rows[CHANGES[claim.id]]["sent_ratio"],
                because="bytes that all devices send in the fastest algorithm of the collective, over the tensor's",
            )


def conversions(setup: Setup) -> Mapping[str, Mapping[str, Any]]:
    """``orrery train --placement searched``: every change of state over as many data-parallel ranks, by name."""
    devices = int(setup.number("num_devices"))
    found = trained(
        model="gpt3-125m",  # bytes over the tensor's do not depend on it
        device=setup.word("device"),
        devices=devices,
        devices_per_node=devices,
        tp=1,
        global_batch=devices,
        seq_len=2048,
        recompute="full",
        placement="searched",
    )
    return {row["change"]: row for row in found.table("conversions")}

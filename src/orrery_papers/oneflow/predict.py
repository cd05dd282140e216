"""OneFlow: the states of a placement, and the bytes that turn one into another."""

from collections.abc import Iterator
from typing import get_args

from orrery import network
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.training.placement.conversion import cheapest
from orrery.training.placement.mesh import Mesh
from orrery.training.placement.state import BROADCAST, PARTIAL, Kind, State, split

TENSOR_BYTES = 1e9

CHANGES: dict[str, tuple[State, State]] = {
    "split-to-broadcast": (split(0), BROADCAST),
    "partial-to-split": (PARTIAL, split(0)),
    "partial-to-broadcast": (PARTIAL, BROADCAST),
    "split-to-split": (split(0), split(1)),
    "broadcast-to-split": (BROADCAST, split(0)),
}
"""Conversion named by each claim."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """The number of states, and what each change of state sends."""
    for claim in paper.claims:
        if claim.id == "states":
            yield Prediction(
                claim=claim.id, predicted=float(len(get_args(Kind))), because="states that every operator is cut with"
            )
        elif claim.id in CHANGES:
            yield Prediction(
                claim=claim.id,
                predicted=sent_ratio(claim.setup, *CHANGES[claim.id]),
                because="bytes that all devices send in the fastest algorithm of the collective, over the tensor's",
            )


def sent_ratio(setup: Setup, before: State, after: State) -> float:
    """Bytes that all devices of one axis send, over the tensor's size."""
    mesh = Mesh(device=get_device(setup.word("device")), shape=(int(setup.number("num_devices")),))
    sent_bytes = 0.0
    for step in cheapest((before,), (after,), TENSOR_BYTES, mesh):
        if step.collective:
            work = mesh.collective(step.collective, 0, step.message_bytes(TENSOR_BYTES, mesh.shape))
            sent_bytes += mesh.num_devices * float(network.predict(work, mesh.device).sent_bytes)
    return sent_bytes / TENSOR_BYTES

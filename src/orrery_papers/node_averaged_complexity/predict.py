"""Node-averaged complexity: electing a leader on a ring, the ordinary node against the last one."""

from collections.abc import Iterator
from math import log

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery_papers.node_averaged_complexity.ring_election import rounds


def predict(paper: Paper) -> Iterator[Prediction]:
    """The logarithm of the worst case over the node average."""
    claims = {claim.id: claim for claim in paper.claims}
    found = rounds(int(claims["exponential-gap"].setup.number("num_ring_nodes")))
    mean, most = float(found.mean()), int(found.max())
    yield Prediction(
        claim="exponential-gap",
        predicted=log(most) / mean,
        because=f"{mean:.2f} rounds in the mean, {most} for the last",
    )

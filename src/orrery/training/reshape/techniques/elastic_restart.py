"""Elastic restart: reshape the checkpoint, train on with the nodes that are left, and come back after the repair."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.training.reshape.restart import Outage, elastic_lost_s


def rule(outage: Outage, knobs: NoKnobs) -> float:
    """Seconds of full-speed training lost: reshaping, the slower stretch, and the way back."""
    del knobs
    return elastic_lost_s(outage)


TECHNIQUE = Technique(
    name="elastic-restart",
    extension_point="training.outage",
    rule=rule,
    gains="Training goes on while nodes are repaired, at the speed of those that are left.",
    costs="The checkpoint is converted and loaded twice, and the batch or the learning rate may have to follow.",
    claims=("lian-2024",),
)

"""Wait for repair: all nodes stand until the lost ones are back, and the old layout's checkpoint is loaded."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.training.reshape.restart import Outage, waiting_lost_s


def rule(outage: Outage, knobs: NoKnobs) -> float:
    """Seconds of full-speed training lost: the repair and one load."""
    del knobs
    return waiting_lost_s(outage)


TECHNIQUE = Technique(
    name="wait-for-repair",
    extension_point="training.outage",
    rule=rule,
    gains="The layout, the batch and the checkpoint stay as they are.",
    costs="Every healthy node is idle for the whole repair.",
    claims=("lian-2024",),
)

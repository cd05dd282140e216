"""Synchronous data parallelism: gradients meet in every step, as far as they can beside the backward pass."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.training.replica import Replica, Round, rounds_of


def rule(replica: Replica, knobs: NoKnobs) -> Round:
    """A step and what the backward pass cannot hide of one all-reduce of all gradients. [li-2020]"""
    del knobs
    sent = replica.num_parameters * replica.gradient_bytes
    exposed_s = replica.overlapped_s(replica.all_reduce_s(sent))
    return rounds_of(replica, 1, exposed_s, sent_bytes=sent, num_rounds_stale=0, extra_bytes=0.0)


TECHNIQUE = Technique(
    name="synchronous",
    extension_point="training.local_updates",
    rule=rule,
    gains="Every step sees all gradients: as good as one large device, step for step.",
    costs="Each step waits for the network as long as it takes longer than the backward pass.",
    claims=("li-2020",),
)

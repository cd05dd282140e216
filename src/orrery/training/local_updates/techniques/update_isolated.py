"""Isolated experts: each island trains a model of its own on its part of the data and never meets the others."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.training.replica import STAYS_APART, Replica, Round, rounds_of


def rule(replica: Replica, knobs: NoKnobs) -> Round:
    """A step of the island alone: gradients meet inside it, beside the backward pass. [mcallister-2025]"""
    del knobs
    sent = replica.num_parameters * replica.gradient_bytes
    exposed_s = replica.overlapped_s(replica.inside_s(sent))
    return rounds_of(replica, 1, exposed_s, sent_bytes=sent, num_rounds_stale=0, extra_bytes=0.0)


TECHNIQUE = Technique(
    name="isolated",
    extension_point="training.local_updates",
    rule=rule,
    gains="No byte crosses between islands while they train, so any machines anywhere will do.",
    costs="One model becomes as many as there are islands, each of which saw a part of the data; a router joins them.",
    claims=("mcallister-2025",),
    traits=frozenset({STAYS_APART}),
)

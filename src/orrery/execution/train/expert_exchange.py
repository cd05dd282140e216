"""Tokens to their experts and back in training: the collectives of one layer and direction, by dispatcher.

*All-gather*: every rank of the etp x ep sees the tokens of all of them, and the sums are scattered back.
*All-to-all*: a copy to each chosen expert; where experts are cut, the ranks that share them gather what arrived and
scatter their sums. *DeepEP*, *HybridEP*: a copy to each device that holds any of the chosen experts, across nodes one
to each node. Whoever receives most holds all of them up. Activations and their gradients travel in 16 bits, so both
ways of both passes move alike. Products with masks (*einsum*) send as all-to-all does.
"""

import numpy as np

from orrery import network
from orrery.execution.train.cut import Choice, Floats
from orrery.execution.train.exchanges import ELEMENT_BYTES, collective_s, device_across
from orrery.execution.train.experts import DEEPEP, GATHER, HYBRIDEP, PLACED, dispatcher_of, routed
from orrery.execution.train.job import TrainingJob
from orrery.models.model import Block, Experts

LIBRARIES = {DEEPEP: "deepep-normal", HYBRIDEP: "tensorrt-llm-one-sided"}
"""Measured kernels. HybridEP's were not: like TensorRT-LLM's one-sided ones they write straight into the memory of
other devices and fill the link with few multiprocessors, where DeepEP's stage what they send."""


def expert_s(job: TrainingJob, block: Block, choice: Choice, cuts: int = 1) -> Floats:
    """Out and back once; with ``cuts`` in so many pieces, one after the other."""
    if block.experts is None:
        return np.zeros(choice.tp.shape)
    x, way = routed(job, block.experts, choice, cuts), dispatcher_of(job)
    own = x.own_tokens if way == GATHER else x.rows / (block.experts.experts_per_token * choice.etp)
    if way in LIBRARIES:
        return cuts * _once_s(job, block.experts, choice, own, LIBRARIES[way])
    token_bytes, ranks = ELEMENT_BYTES * own * block.experts.hidden_size, choice.ep * choice.etp
    ones = np.ones_like(choice.tp)
    if way == GATHER:
        return cuts * sum(
            (collective_s(job, kind, ranks, ones, token_bytes * ranks) for kind in ("all_gather", "reduce_scatter")),
            np.zeros(choice.tp.shape),
        )
    message = token_bytes * block.experts.experts_per_token
    sent = 2.0 * collective_s(job, "all_to_all", choice.ep, choice.etp, message)
    return cuts * (sent + _among_cuts_s(job, choice, message))


def inside_s(job: TrainingJob, block: Block, choice: Choice) -> Floats:
    """The part of ``expert_s`` that has links of its own: gathers and scatters inside nodes beside sends between them.

    0 where the ranks that share an expert are not of one node, or where all ranks of the experts are.
    """
    if block.experts is None or dispatcher_of(job) not in PLACED:
        return np.zeros(choice.tp.shape)
    per_node, message = job.cluster.devices_per_node, ELEMENT_BYTES * block.experts.hidden_size
    rows = routed(job, block.experts, choice).rows / choice.etp
    is_apart = (choice.etp <= per_node) & (choice.ep * choice.etp > per_node)
    return np.where(is_apart, _among_cuts_s(job, choice, message * rows), 0.0)


def _among_cuts_s(job: TrainingJob, choice: Choice, message_bytes: Floats) -> Floats:
    """Gathers of received tokens among the ranks that share an expert, and scatters of their sums."""
    ones = np.ones_like(choice.tp)
    gathered = collective_s(job, "all_gather", choice.etp, ones, message_bytes * choice.etp)
    return gathered + collective_s(job, "reduce_scatter", choice.etp, ones, message_bytes * choice.etp)


def _once_s(job: TrainingJob, experts: Experts, choice: Choice, own: Floats, library: str) -> Floats:
    """Where experts are cut, every part of one is a place of its own that its tokens go to."""
    out = np.zeros(choice.tp.shape)
    for ep, etp in sorted(set(zip(choice.ep.tolist(), choice.etp.tolist(), strict=True))):
        if ep * etp > 1:
            here = (choice.ep == ep) & (choice.etp == etp)
            work = network.TokenExchange(
                kind="moe_combine",
                num_devices=ep * etp,
                tokens=own[here],
                hidden_size=experts.hidden_size,
                num_experts=experts.num_experts * etp,
                experts_per_token=experts.experts_per_token * etp,
                format="bf16",
                library=library,
                devices_per_node=job.cluster.devices_per_node,
            )
            out[here] = 2.0 * np.asarray(network.predict(work, device_across(job, ep * etp)).time_s)
    return out

"""Holmes: one GPT model on one kind of network card, and on two groups that only Ethernet joins."""

from collections.abc import Iterator, Mapping
from typing import Any

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.setup import layout_of
from orrery_papers.shared.trained_by import trained

ASSUMED = "links, batch and degrees are assumed"
HOPS = (
    "activations cross between the groups once a micro-batch and direction, and with two stages nothing hides them; "
    f"{ASSUMED}"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Rates of one card each, and the mixed cluster against both ends."""
    for claim in paper.claims:
        setup = claim.setup
        if claim.metric == "device_rate":
            step = alone(setup, "ethernet" in claim.id)
            devices = setup.number("num_nodes") * setup.number("num_devices_per_node")
            yield Prediction(
                claim=claim.id,
                predicted=step["hardware_flops"] / step["step_s"] / devices,
                differs=ASSUMED,
                because=f"a step of {step['step_s']:.2f} s, {step['longest_ring_s']:.2f} s of it gradients",
            )
        else:
            other, mixed = alone(setup, claim.id != "near-rdma"), grouped(setup)
            yield Prediction(
                claim=claim.id,
                predicted=other["step_s"] / mixed["step_s"],
                differs=HOPS,
                because=f"{mixed['layers']} layers: {mixed['step_s']:.2f} s, not {other['step_s']:.2f} s",
            )


def alone(setup: Setup, is_ethernet: bool) -> Mapping[str, Any]:
    """All nodes on one kind of card, layers dealt out evenly."""
    rate = setup.number("group_link_bytes_per_s" if is_ethernet else "link_bytes_per_s")
    return placed(setup, f"one:{setup.number('num_nodes'):g}:{rate:g}", "grouped")


def grouped(setup: Setup) -> Mapping[str, Any]:
    """Half of the nodes on InfiniBand, half on RoCE, Ethernet between them."""
    half, rate = setup.number("num_nodes") // 2, setup.number("link_bytes_per_s")
    return placed(setup, f"infiniband:{half:g}:{rate:g},roce:{half:g}:{rate:g}", "adapted")


def placed(setup: Setup, groups: str, placement: str) -> Mapping[str, Any]:
    """``orrery train --nic-groups`` on the set-up: stated stages, data parallelism over the rest."""
    nodes, per_node = int(setup.number("num_nodes")), int(setup.number("num_devices_per_node"))
    answer = trained(
        model=setup.word("model"),
        device=setup.word("device"),
        devices=nodes * per_node,
        devices_per_node=per_node,
        pp=layout_of(setup.word("layout")).pp,
        micro_batch=int(setup.number("num_micro_batch")),
        global_batch=int(setup.number("num_global_batch")),
        seq_len=int(setup.number("sequence_tokens")),
        framework="megatron-lm",
        precision="bf16",
        sharding="zero1",
        recompute="full",
        nic_groups=groups,
        nic_group_link_bytes_per_s=setup.number("group_link_bytes_per_s"),
        nic_placement=placement,
    )
    return next(row for row in answer.table("network_cards") if row["placement"] == placement)

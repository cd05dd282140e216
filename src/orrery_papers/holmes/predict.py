"""Holmes: one GPT model on one kind of network card, and on two groups that only Ethernet joins."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Link
from orrery.training.islands import Fleet, GroupedStep, NodeGroup, adapted_layers, even_layers, grouped_step
from orrery_papers.shared.setup import joined, layout_of

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
            devices = int(setup.number("num_nodes") * setup.number("num_devices_per_node"))
            yield Prediction(
                claim=claim.id, predicted=step.flops_per_s_per_device(devices), differs=ASSUMED,
                because=f"a step of {step.time_s:.2f} s, {max(step.reduce_s):.2f} s of it gradients",
            )  # fmt: skip
        else:
            other, mixed = alone(setup, claim.id != "near-rdma"), grouped(setup)
            yield Prediction(
                claim=claim.id, predicted=other.time_s / mixed.time_s, differs=HOPS,
                because=f"{' + '.join(map(str, mixed.layers))} layers: {mixed.time_s:.2f} s, not {other.time_s:.2f} s",
            )  # fmt: skip


def alone(setup: Setup, is_ethernet: bool) -> GroupedStep:
    """All nodes on one kind of card, layers dealt out evenly."""
    one, fast, slow = job(setup), *links(setup)
    link = slow if is_ethernet else fast
    fleet = Fleet(groups=(NodeGroup(name="one", num_nodes=one.cluster.num_nodes, link=link),), between=link)
    return grouped_step(one, layout(setup), fleet, even_layers(one.model.num_layers, layout(setup).pp))


def grouped(setup: Setup) -> GroupedStep:
    """Half of the nodes on InfiniBand, half on RoCE, Ethernet between them."""
    one, fast, slow = job(setup), *links(setup)
    half = one.cluster.num_nodes // 2
    groups = tuple(NodeGroup(name=name, num_nodes=half, link=fast) for name in ("infiniband", "roce"))
    return adapted_layers(one, layout(setup), Fleet(groups=groups, between=slow))


def links(setup: Setup) -> tuple[Link, Link]:
    """One device's part of its machine's cards: RDMA and Ethernet."""
    device, per_node = get_device(setup.word("device")), int(setup.number("num_devices_per_node"))
    fast, slow = (
        joined(device, setup.number(name), per_node).scaleout for name in ("link_bytes_per_s", "group_link_bytes_per_s")
    )
    return replace(fast, name="RDMA"), replace(slow, name="Ethernet")


def job(setup: Setup) -> TrainingJob:
    """The set-up under Megatron-LM."""
    device, per_node = get_device(setup.word("device")), int(setup.number("num_devices_per_node"))
    num_devices = int(setup.number("num_nodes")) * per_node
    return TrainingJob(
        model=get_model(setup.word("model")), framework=get_framework("megatron-lm", device),
        recipe=get_recipe("bf16"), seq_len=int(setup.number("sequence_tokens")),
        global_batch=int(setup.number("num_global_batch")),
        cluster=Cluster(device=device, num_devices=num_devices, devices_per_node=per_node),
    )  # fmt: skip


def layout(setup: Setup) -> TrainingLayout:
    """The stated stages, data parallelism over the rest."""
    pp = layout_of(setup.word("layout")).pp
    devices = int(setup.number("num_nodes") * setup.number("num_devices_per_node"))
    return TrainingLayout(
        pp=pp, dp=devices // pp, micro_batch=int(setup.number("num_micro_batch")), sharding="zero1", recompute="full"
    )

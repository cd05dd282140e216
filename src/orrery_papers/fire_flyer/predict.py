"""Fire-Flyer: sums through the host against one ring, and what such a cluster costs, draws and trains beside DGX."""

from collections.abc import Iterator
from math import ceil
from typing import Any

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.fleet.clusters import own_clusters
from orrery.scenario.kernel.answer import KernelRow
from orrery.scenario.kernel.run import predict_kernel, read_kernel
from orrery.scenario.train import TrainAnswer, train
from orrery_papers.shared.setup import layout_of

SLOWER = (
    "copies, sums and sends are taken to overlap without a gap; on the real machine they share the root complex and "
    "the processor's cores, and the buffer that was summed is not known"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The speed-up first, then bandwidths, switches, cost and draw."""
    claims = {claim.id: claim for claim in paper.claims}
    ours, ring = sums(claims["gain-1440"].setup)
    yield Prediction(
        claim="gain-1440",
        predicted=ring.time_s / ours.time_s,
        differs=SLOWER,
        because=f"through the host the {ours.details['set_by']} sets the pace, in the ring the "
        f"{ring.details['set_by']} and its many steps",
    )
    for claim in paper.claims:
        if claim.metric == "all_reduce_bandwidth":
            yield bandwidth(claim)
    yield from owned(claims["cost"].setup)
    pcie, dgx = (tokens_per_s(claims["throughput"].setup, role) for role in ("device", "baseline_device"))
    yield Prediction(
        claim="throughput",
        predicted=pcie / dgx,
        because=f"{pcie:.0f} tokens/s, not {dgx:.0f}, with a card for eight devices and not for each",
        differs="the model, its layout and the batch are assumed; sums take the usual rings; both cards compute at "
        "the same clock, which the one of 250 W does not hold under load",
    )


def owned(setup: Setup) -> Iterator[Prediction]:
    """``orrery fleet --owned`` on both clusters: switches, capital, and the draw of a machine."""
    answer = own_clusters({"owned": {"cluster": [pcie_cluster(setup), dgx_cluster(setup)]}})
    ours, other = answer.clusters
    saved = answer.compared(other)
    for claim, cluster in (("switches", ours), ("baseline-switches", other)):
        trees = (
            "two two-layer trees and what joins them" if cluster is ours else "one three-layer tree, full of machines"
        )
        yield Prediction(claim=claim, predicted=cluster.num_switches, because=trees)
    yield Prediction(
        claim="cost",
        predicted=saved["capital_saved_frac"],
        because=f"{ours.num_nodes} machines and {ours.num_switches} switches for ${ours.capital_usd / 1e6:.0f} M, not "
        f"${other.capital_usd / 1e6:.0f} M",
        differs="prices of cards, machines and switches are assumed",
    )
    yield Prediction(
        claim="energy",
        predicted=saved["node_power_saved_frac"],
        because=f"{ours.node_w:.0f} W a machine, not {other.node_w:.0f} W",
        differs="draws of hosts are assumed",
    )


def pcie_cluster(setup: Setup) -> dict[str, Any]:
    """Machines with one card on two networks that are joined."""
    return {
        "name": "pcie",
        "device": setup.word("device"),
        "devices": int(setup.number("num_devices")),
        "devices_per_node": int(setup.number("num_devices_per_node")),
        "device_usd": setup.number("device_usd"),
        "host_usd": setup.number("host_usd"),
        "host_w": setup.number("host_w"),
        "networks": int(setup.number("num_zones")),
        "network_ports": int(setup.number("num_zone_endpoints")),
        "joining_switches": int(setup.number("num_joining_switches")),
        "switch_ports": int(setup.number("num_switch_ports")),
        "switch_usd": setup.number("switch_usd"),
    }


def dgx_cluster(setup: Setup) -> dict[str, Any]:
    """Machines with a card for each device on one tree of three layers."""
    return {
        "name": "dgx",
        "device": setup.word("baseline_device"),
        "devices": int(setup.number("num_devices")),
        "devices_per_node": int(setup.number("num_devices_per_node")),
        "node_usd": setup.number("baseline_node_usd"),
        "host_w": setup.number("baseline_host_w"),
        "node_ports": int(setup.number("num_devices_per_node")),
        "network_ports": int(setup.number("num_baseline_endpoints")),
        "switch_layers": 3,
        "switch_ports": int(setup.number("num_switch_ports")),
        "switch_usd": setup.number("switch_usd"),
    }


def tokens_per_s(setup: Setup, role: str) -> float:
    """``orrery train`` on one of the clusters; the one with PCIe has one card a machine."""
    link = {"node_link_bytes_per_s": setup.number("node_link_bytes_per_s")} if role == "device" else {}
    answer = train(
        model=setup.word("model"),
        device=setup.word(role),
        devices=int(setup.number("num_devices")),
        devices_per_node=int(setup.number("num_devices_per_node")),
        pp=layout_of(setup.word("layout")).pp,
        global_batch=int(setup.number("num_global_batch")),
        micro_batch=1,
        seq_len=int(setup.number("sequence_tokens")),
        sharding="zero1",
        recompute="full",
        gradient_overlap="gradient-buckets",  # the abstract: computation and communication overlap
        **link,
    )
    if not isinstance(answer, TrainAnswer):
        raise OutOfRange(f"setup {setup.name}: {answer}")
    return float(answer.to_json()["tokens_per_s"])


def bandwidth(claim: Claim) -> Prediction:
    """One way of summing at one size."""
    ours, ring = sums(claim.setup)
    done = ours if claim.id.startswith("host") else ring
    return Prediction(
        claim=claim.id,
        predicted=done.details["bandwidth_bytes_per_s"],
        differs=SLOWER,
        because=f"{done.details['set_by']}: {done.time_s * 1e3:.1f} ms in all",
    )


def sums(setup: Setup) -> tuple[KernelRow, KernelRow]:
    """``orrery kernel all-reduce --fabric host-bus`` on the set-up: through the host, and as one ring."""
    per_node = setup.number("num_devices_per_node")
    question = read_kernel(
        {
            "op": "all-reduce",
            "fabric": "host-bus",
            "device": setup.word("device"),
            "devices": int(per_node * ceil(setup.number("num_devices") / per_node)),
            "devices_per_node": int(per_node),
            "devices_per_port": int(setup.number("num_devices_per_port")),
            "message_bytes": setup.number("buffer_bytes"),
            "bus_bytes_per_s": setup.number("host_link_bytes_per_s"),
            "port_bytes_per_s": setup.number("port_bytes_per_s"),
            "host_memory_bytes_per_s": setup.number("host_memory_bytes_per_s"),
            "card_bytes_per_s": setup.number("node_link_bytes_per_s"),
            "peer_bytes_per_s": setup.number("peer_bytes_per_s"),
            "card_message_s": setup.number("message_s"),
        }
    )
    rows = {row.variant: row for row, _ in predict_kernel(question)[1]}
    return rows["through-host"], rows["ring-over-bus"]

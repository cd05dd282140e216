"""Fire-Flyer: sums through the host against one ring, and what such a cluster costs and draws beside DGX."""

from collections.abc import Iterator
from math import ceil

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.fleet.fabric import num_switches
from orrery.scenario.kernel.answer import KernelRow
from orrery.scenario.kernel.run import predict_kernel, read_kernel

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
    setup = claims["cost"].setup
    few, many = (
        switches(setup),
        num_switches(int(setup.number("num_baseline_endpoints")), int(setup.number("num_switch_ports")), 3),
    )
    yield Prediction(claim="switches", predicted=few, because="two two-layer trees and what joins them")
    yield Prediction(claim="baseline-switches", predicted=many, because="one three-layer tree, full of machines")
    nodes = ceil(setup.number("num_devices") / setup.number("num_devices_per_node"))
    per_node = setup.number("num_devices_per_node")
    cost = nodes * (per_node * setup.number("device_usd") + setup.number("host_usd")) + few * setup.number("switch_usd")
    other = nodes * setup.number("baseline_node_usd") + many * setup.number("switch_usd")
    yield Prediction(
        claim="cost",
        predicted=1.0 - cost / other,
        because=f"{nodes} machines and {few} switches for ${cost / 1e6:.0f} M, not ${other / 1e6:.0f} M",
        differs="prices of cards, machines and switches are assumed",
    )
    drawn, baseline = (
        setup.number(host) + per_node * get_device(setup.word(device)).power_limit_w
        for host, device in (("host_w", "device"), ("baseline_host_w", "baseline_device"))
    )
    yield Prediction(
        claim="energy",
        predicted=1.0 - drawn / baseline,
        because=f"{drawn:.0f} W a machine, not {baseline:.0f} W",
        differs="draws of hosts are assumed",
    )


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


def switches(setup: Setup) -> int:
    """Number of switches in the zones and between them."""
    zone = num_switches(int(setup.number("num_zone_endpoints")), int(setup.number("num_switch_ports")), 2)
    return int(setup.number("num_zones")) * zone + int(setup.number("num_joining_switches"))

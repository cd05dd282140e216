"""Pairwise exchange: every device sends each other one its part, all at once."""

from orrery.base.technique import Technique
from orrery.network.group import Group
from orrery.network.traffic import Traffic

TRANSPORTS = ("low_latency", "bulk")
"""NCCL sends between two peers without LL128. [nccl]"""


def rule(group: Group) -> Traffic | None:
    """All-to-all: (n - 1)/n S leave a device, (n - g)/n S of them for other nodes. Send-receive: S to one peer.

    A torus carries each byte d k / 4 hops on average for rings of k = n^(1/d) devices.
    """
    n, inside, nodes = group.num_devices, min(group.num_devices, group.per_node), group.num_nodes
    if group.kind == "send_recv":
        far = inside < 2
        alone = float(group.links or 1) if group.topology == "mesh" else 2.0 * group.num_dimensions
        near = alone if group.topology == "mesh" or group.topology.startswith("torus") else 1.0
        return Traffic(
            num_steps=0 if far else 1,
            wire_ratio=0.0 if far else near,
            num_out_steps=1 if far else 0,
            out_ratio=1.0 if far else 0.0,
            transports=TRANSPORTS,
        )
    if group.kind != "all_to_all":
        return None
    hops = 1.0
    if group.topology.startswith("torus"):
        hops = max(group.num_dimensions * inside ** (1.0 / group.num_dimensions) / 4.0, 1.0)
    return Traffic(
        num_steps=1 if inside > 1 else 0,
        wire_ratio=(inside - 1) / n * hops * group.crowding_ratio,
        num_out_steps=1 if nodes > 1 else 0,
        out_ratio=(n - inside) / n,
        transports=TRANSPORTS,
    )


TECHNIQUE = Technique(
    name="pairwise",
    extension_point="network.collective",
    rule=rule,
    gains="Every byte travels once.",
    costs="n - 1 small messages a device; across nodes nothing is shared.",
    claims=("thakur-2005",),
    command="orrery kernel all-to-all --device NAME --devices N --message-bytes BYTES --variant pairwise",
)

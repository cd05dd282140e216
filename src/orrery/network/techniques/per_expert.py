"""Low-latency exchange: a token is sent once to each of its experts, straight into that expert's buffer."""

from orrery.base.technique import Technique
from orrery.network.routing import Copies, Routing


def rule(routing: Routing) -> Copies:
    """k copies; (g - 1)/n of them stay on the node's links, (n - g)/n cross the network, all in one step."""
    group, k = routing.group, float(routing.experts_per_token)
    n, inside = group.num_devices, min(group.num_devices, group.per_node)
    return Copies(
        inside_ratio=k * (inside - 1) / n,
        across_ratio=k * (n - inside) / n,
        local_ratio=k,
        num_out_steps=1 if group.num_nodes > 1 else 0,
        transport="per_expert",
    )


TECHNIQUE = Technique(
    name="per-expert",
    extension_point="network.exchange",
    rule=rule,
    gains="No counting before sending: the lowest latency for a few tokens.",
    costs="Experts that share a device or a node each get their own copy.",
    claims=("deepep",),
)

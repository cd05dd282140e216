"""Two-shot all-reduce: each device sums its n-th of the buffer, then all read the sums; an engine's own kernel."""

from orrery.base.technique import Technique
from orrery.network.group import Group
from orrery.network.traffic import Traffic


def rule(group: Group) -> Traffic | None:
    """Two exchanges of (n - 1)/n S, inside one node of more than two devices that a bus does not join.

    Between them every device must see the sums of all others: a barrier that flushes memory, so that a step is
    several times one-shot's.
    """
    n = group.num_devices
    if group.kind != "all_reduce" or group.num_nodes > 1 or not group.has_peer_to_peer or n < 3:
        return None
    if group.topology == "bus":
        return None
    return Traffic(
        num_steps=2,
        wire_ratio=2.0 * (n - 1) / n * group.crowding_ratio * group.num_dimensions,
        staged_ratio=1.0,
        transports=("two_shot",),
    )


TECHNIQUE = Technique(
    name="two-shot",
    extension_point="network.collective",
    rule=rule,
    gains="As few bytes as a ring, in two steps for any number of devices.",
    costs="One synchronisation more than one-shot; all devices must see each other.",
    command=("orrery kernel all-reduce --device NAME --devices N --message-bytes BYTES --engine vllm --variant {name}"),
    claims=("tensorrt-llm", "vllm"),
)

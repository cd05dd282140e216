"""One-shot all-reduce: every device reads the whole buffer of every other and adds; an engine's own kernel."""

from orrery.base.technique import Technique
from orrery.network.group import Group
from orrery.network.traffic import Traffic


def rule(group: Group) -> Traffic | None:
    """One exchange of (n - 1) S, inside one node, with a flag to and from each of n - 1 others. On a bus engines trust
    their own kernels with two devices only, which reach each other where more would crowd through the host.
    """
    if group.kind != "all_reduce" or group.num_nodes > 1 or (group.topology == "bus" and group.num_devices > 2):
        return None
    return Traffic(
        num_steps=1,
        wire_ratio=(group.num_devices - 1.0) * group.crowding_ratio * group.num_dimensions,
        staged_ratio=1.0,
        num_peers=group.num_devices - 1,
        transports=("one_shot",),
    )


TECHNIQUE = Technique(
    name="one-shot",
    extension_point="network.collective",
    rule=rule,
    gains="One synchronisation in all: the fastest for small messages.",
    costs="Sends (n - 1) S: n/2 times what a ring sends.",
    command=("orrery kernel all-reduce --device NAME --devices N --message-bytes BYTES --engine vllm --variant {name}"),
    claims=("tensorrt-llm", "vllm"),
)

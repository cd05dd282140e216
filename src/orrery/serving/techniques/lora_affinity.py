"""LoRA affinity: a replica that has the request's adapter on its devices, unless it is too far behind."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import READS_ADAPTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Balance: a replica more than ``most_behind_requests`` above the least loaded is passed over."""

    most_behind_requests: float = 8.0


def route(
    requests: Sequence[float],
    tokens: Sequence[float],
    prefix_blocks: Sequence[float],
    home: int,
    turn: int,
    first_draw: float,
    second_draw: float,
    knobs: Sequence[float],
) -> int:
    """The least loaded replica among those that hold the adapter (1 in ``prefix_blocks``) and are not overloaded, else
    among all."""
    least = 0
    for k in range(1, len(requests)):
        if requests[k] < requests[least]:
            least = k
    best = -1
    for k in range(len(requests)):
        if prefix_blocks[k] <= 0.0 or requests[k] > requests[least] + knobs[0]:
            continue
        if best < 0 or requests[k] < requests[best]:
            best = k
    return best if best >= 0 else least


TECHNIQUE = Technique(
    name="lora-affinity",
    extension_point="serving.route",
    rule=route,
    knobs=Knobs,
    gains="Adapters are loaded less often, and a batch has fewer of them to read.",
    costs="Load is less even, and the router must know what every replica holds.",
    claims=("sheng-2023-slora",),
    command="orrery simulate --replicas N --lora-adapters N --router {name}",
    measure="how many adapters your requests choose, and how unevenly",
    traits=frozenset({READS_ADAPTERS}),
)

"""Nano-batches: kernels bound by compute, memory and network run at once, each for another part of the batch."""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.knobs import check_range
from orrery.base.technique import ACTS_ALONE, Technique
from orrery.execution.batch import Floats

SHARES = (0.1, 0.2, 0.4, 0.8, 0.9)
"""Shares of a device at which the interference table states a speed; linear between, 0 at 0 and 1 at 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NanoBatchKnobs:
    """How many parts, and how fast a kernel runs beside others with a share of the device, in parts of its speed alone.

    A share is what the others leave of the speed of matrix products, so compute-bound kernels run at their share. The
    tables are assumed, in the shape that [nanoflow-2024] reports for an A100: a memory-bound kernel reaches most of its
    speed with 0.4 of the device, a collective half of its speed with 0.2.
    """

    num_batches: int = 2
    memory_at_10_frac: float = 0.2
    memory_at_20_frac: float = 0.3
    memory_at_40_frac: float = 0.8
    memory_at_80_frac: float = 0.85
    memory_at_90_frac: float = 0.95
    network_at_10_frac: float = 0.3
    network_at_20_frac: float = 0.5
    network_at_40_frac: float = 0.65
    network_at_80_frac: float = 0.9
    network_at_90_frac: float = 1.0

    def __post_init__(self) -> None:
        check_range(self, "num_batches", 2, 64)
        for kind in ("memory", "network"):
            before = 0.0
            for share in SHARES:
                name = f"{kind}_at_{100 * share:.0f}_frac"
                check_range(self, name, share, 1.0)
                if getattr(self, name) < before:
                    raise ScenarioError(f"{name} in NanoBatchKnobs falls below {before:g}; more share is never slower.")
                before = getattr(self, name)


def rule(
    total_s: float,
    network_s: float,
    memory_s: float,
    split_extra_s: float,
    halves_network_extra_s: float,
    num_layers: float,
    knobs: Floats,
) -> float:
    """min over shares of max(compute/r1, memory/p(r2), network/q(r3)), r1 + r2 + r3 = 1, once nano-batches flow.

    The least time T is found by bisection: in time T each kind needs the share at which it is just done. The first and
    the last of the num_batches x num_layers turns have nothing beside them, one turn's worth in all. Halving costs its
    extra once for every further nano-batch.
    """
    turns = knobs[0] * num_layers
    if turns < 1.0:
        return total_s
    further = knobs[0] - 1.0
    compute_s = max(0.0, total_s - network_s - memory_s) + further * split_extra_s
    wire_s = network_s + further * halves_network_extra_s
    alone_s = compute_s + memory_s + wire_s
    low_s, high_s = max(compute_s, max(memory_s, wire_s)), alone_s
    for _ in range(40):
        middle_s = 0.5 * (low_s + high_s)
        if middle_s <= 0.0:
            break
        taken = compute_s / middle_s
        for kind in range(2):
            speed = (memory_s if kind == 0 else wire_s) / middle_s
            share, reached = 0.0, 0.0
            for i in range(6):
                next_share = SHARES[i] if i < 5 else 1.0
                next_reached = knobs[1 + 5 * kind + i] if i < 5 else 1.0
                if speed <= reached:
                    break
                if speed < next_reached:
                    share += (next_share - share) * (speed - reached) / (next_reached - reached)
                else:
                    share = next_share
                reached = next_reached
            taken += share
        if taken <= 1.0:
            high_s = middle_s
        else:
            low_s = middle_s
    return min(total_s, alone_s / turns + (1.0 - 1.0 / turns) * high_s)


TECHNIQUE = Technique(
    name="nano-batches",
    extension_point="execution.overlap",
    rule=rule,
    knobs=NanoBatchKnobs,
    gains="Memory and links work while matrix units do; what is scarcest is what the time comes from.",
    costs="Weights are read once for every nano-batch, and kernels that share a device slow each other.",
    claims=("nanoflow-2024",),
    traits=frozenset({ACTS_ALONE}),
)

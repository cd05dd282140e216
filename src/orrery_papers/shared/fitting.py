"""Minimum devices that hold a model: degrees of tensor parallelism that double, until weights and a cache fit."""

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Setup
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory, memory_of
from orrery_papers.shared.setup import deployment

MAX_DEVICES = 32
"""More would no longer share out the heads of the models that are asked about."""


def deployed(setup: Setup, num_devices: int) -> Deployment:
    """The set-up's model over so many devices, for the prompts that it states."""
    return deployment(
        setup,
        layout=f"tp{num_devices}",
        max_num_seqs=int(setup.number("num_batch", 1)),
        max_num_batched_tokens=int(setup.number("max_num_batched_tokens")),
    )


def fewest(setup: Setup) -> tuple[int, Memory]:
    """The fewest devices that hold the model and a cache for the set-up's context, and what is on the fullest."""
    count = 1
    while count <= MAX_DEVICES:
        found = memory_of(deployed(setup, count))
        if not isinstance(found, Infeasible) and found.kv_capacity_tokens >= setup.number("max_context_tokens"):
            return count, found
        count *= 2
    raise OutOfRange(f"{setup.name}: {MAX_DEVICES} devices do not hold it; name a larger device.")

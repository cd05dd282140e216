"""Training steps whose states leave the device, answered by the same call as ``orrery train --offload``."""

from typing import Any

from orrery.base.errors import FactError
from orrery.evidence.paper_file import Setup
from orrery.execution.offload.tiers import CONTEXT_BYTES
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.train import train
from orrery.scenario.train_offload import OffloadAnswer
from orrery_papers.shared.described import model_word

OF_THE_NODE = {
    "host_memory_bytes": "host_bytes",
    "host_memory_bytes_per_s": "host_memory_bytes_per_s",
    "nvme_bytes": "nvme_bytes",
    "nvme_read_bytes_per_s": "nvme_read_bytes_per_s",
    "nvme_write_bytes_per_s": "nvme_write_bytes_per_s",
    "host_updates_per_s": "num_host_updates_per_s",
    "node_link_bytes_per_s": "link_bytes_per_s",
}
"""Settings, and the lines of a set-up that state them of a whole node."""

ALL_TIERS = "all tiers"

ANY_HOST_BYTES = 1e13
"""Host memory that is never the tier that lacks."""


def answer_of(setup: Setup, offload: str, **given: Any) -> OffloadAnswer | InfeasibleAnswer:
    """``orrery train --offload`` on the set-up's model, device and node; what is given stands in place of its lines."""
    micro = int(given.get("micro_batch") or setup.number("num_micro_batch"))
    settings: dict[str, Any] = {
        "device": setup.word("device"),
        "devices": 1,
        "devices_per_node": 1,
        "seq_len": int(setup.number("sequence_tokens")),
        "precision": setup.word("weights_format") or "fp16",
        "micro_batch": micro,
        "global_batch": micro,
        **{name: value for name, line in OF_THE_NODE.items() if (value := setup.number(line))},
    }
    found = train(**(settings | {"model": model_word(setup)} | given), offload=offload)
    assert isinstance(found, OffloadAnswer | InfeasibleAnswer)  # as offload is given
    return found


def step_of(setup: Setup, offload: str, **given: Any) -> OffloadAnswer:
    """The same where it must fit; FactError says what does not."""
    found = answer_of(setup, offload, **given)
    if isinstance(found, InfeasibleAnswer):
        raise FactError(f"setup {setup.name}: {found.infeasible}")
    return found


def device_bytes(setup: Setup, offload: str, **given: Any) -> float:
    """Bytes on the device, the process itself included, whether they fit it or not."""
    found = answer_of(setup, offload, **({"host_memory_bytes": ANY_HOST_BYTES} | given))
    return CONTEXT_BYTES + (found.held.gpu_bytes if isinstance(found, OffloadAnswer) else found.infeasible.need)


def largest_of(setup: Setup, offload: str, tiers: str = ALL_TIERS, **given: Any) -> float:
    """Parameters of the largest model of ``--find-largest``, with every tier of memory or some of them."""
    rows = answer_of(setup, offload, find_largest=True, **given).table("largest")
    return float(next(row["num_parameters"] for row in rows if row["tiers"] == tiers))

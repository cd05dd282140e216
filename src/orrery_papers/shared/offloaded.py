"""From a paper's set-up to the tiers and the work of a training step that leaves the device."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

from orrery.base.errors import FactError
from orrery.base.extension_points import technique_at
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Setup
from orrery.execution.memory import Infeasible
from orrery.execution.offload import techniques
from orrery.execution.offload.largest import Largest, largest_model
from orrery.execution.offload.layers import layer_work
from orrery.execution.offload.shapes import gpt
from orrery.execution.offload.step import OffloadedStep
from orrery.execution.offload.tiers import Tiers, tiers_of
from orrery.execution.offload.work import Work
from orrery.hardware.device import Device
from orrery.models.model import Model

SEAM = "execution.offload"
RELAYED_RATIO = 6.0
"""How many times slower copies of pageable memory are: what pinning gained in DeepSpeed, pull request 5301."""


def device_of(setup: Setup) -> Device:
    """The set-up's device."""
    return get_device(setup.word("device"))


def model_of(setup: Setup) -> Model:
    """The catalogue's model, or the GPT whose layers and width the set-up states."""
    if word := setup.word("model"):
        return get_model(word)
    if not setup.number("num_layers"):
        raise FactError(f"setup {setup.name}: states no model; write model, or num_layers and num_hidden.")
    return gpt(
        int(setup.number("num_layers")),
        int(setup.number("num_hidden")),
        num_heads=int(setup.number("num_heads")),
        max_tokens=int(setup.number("sequence_tokens")),
    )


def work_of(setup: Setup, model: Model | None = None, **given: Any) -> Work:
    """A step of the set-up's micro-batch, of its model or another one."""
    requested: dict[str, Any] = {
        "sequences": int(setup.number("num_micro_batch")),
        "sequence_tokens": int(setup.number("sequence_tokens")),
        "precision": setup.word("weights_format") or "fp16",
        **given,
    }
    return layer_work(model or model_of(setup), device_of(setup), **requested)


def tiers_for(setup: Setup, *, num_ranks: int = 1, num_sharing: int = 1, num_per_link: int = 1) -> Tiers:
    """The tiers below one of ``num_sharing`` devices of the set-up's host, which share what is stated for the host."""
    tiers = tiers_of(
        device_of(setup),
        host_bytes=setup.number("host_bytes"),
        nvme_bytes=setup.number("nvme_bytes"),
        host_memory_bytes_per_s=setup.number("host_memory_bytes_per_s", inf),
        nvme_read_bytes_per_s=setup.number("nvme_read_bytes_per_s", inf),
        nvme_write_bytes_per_s=setup.number("nvme_write_bytes_per_s", inf),
        num_sharing=num_sharing,
        num_per_link=num_per_link,
        num_ranks=num_ranks,
        collective_bytes_per_s=setup.number("link_bytes_per_s", inf),
    )
    return replace(tiers, pageable_bytes_per_s=tiers.host_link_each_way_bytes_per_s / RELAYED_RATIO)


def step_of(name: str, work: Work, tiers: Tiers, **knobs: Any) -> OffloadedStep:
    """The step under the schedule ``name``."""
    technique = technique_at(techniques, SEAM, name)
    return technique.rule(work, tiers, technique.knobs(**knobs))


def largest_of(
    name: str, tiers: Tiers, work: Callable[[float], Work], least_parameters: float = 2e8, **knobs: Any
) -> float:
    """Parameters of the largest model under the schedule ``name``; 0 where not even a small one fits."""
    found: Largest | Infeasible = largest_model(
        lambda w: step_of(name, w, tiers, **knobs), tiers, work, least_parameters=least_parameters
    )
    return 0.0 if isinstance(found, Infeasible) else found.num_parameters

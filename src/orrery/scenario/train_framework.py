"""Settings of a scenario in place of its training framework's defaults, with a note for each that changes nothing."""

from dataclasses import replace
from typing import Any

from orrery.execution.train.framework import Framework
from orrery.models.model import Model, SoftmaxAttention
from orrery.scenario.levers.found import has_experts
from orrery.scenario.levers.idle import NOTED_OF_FRAMEWORKS, SOME, Found, idle_notes
from orrery.scenario.schema import Scenario
from orrery.training.launches import read_scopes

FIELDS = {
    "fused_attention": "has_fused_attention",
    "native_attention": "has_native_attention",
    "cuda_graphs": "cuda_graphs",
    "target_modules": "adapter_targets",
    "overlap_micro_batches": "overlaps_experts",
}
"""Settings, and what each is of a framework."""


def as_asked(framework: Framework, scenario: Scenario, model: Model, notes: list[str]) -> Framework:
    """The framework with the scenario's own settings in place of its defaults.

    Raises:
        ScenarioError: a part of a step that has no graph of its own.
    """
    given = scenario.written()
    changes: dict[str, Any] = {field: given[name] for name, field in FIELDS.items() if name in given}
    read_scopes(changes.get("cuda_graphs", ""))
    changed = replace(framework, **changes) if changes else framework
    is_fused = changed.has_fused_attention and any(isinstance(b.mixer, SoftmaxAttention) for b in model.blocks)
    found = Found(has_experts=has_experts(model), has_fused_attention=is_fused, ep=SOME)
    notes += idle_notes(given, found, NOTED_OF_FRAMEWORKS)
    return changed

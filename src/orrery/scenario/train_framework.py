"""Settings of a scenario in place of its training framework's defaults, with a note for each that changes nothing."""

from dataclasses import replace
from typing import Any

from orrery.execution.train.framework import Framework
from orrery.models.model import Model, SoftmaxAttention
from orrery.scenario.schema import Scenario
from orrery.training.launches import EXPERTS, MAPS, ROUTER, read_scopes


def as_asked(framework: Framework, scenario: Scenario, model: Model, notes: list[str]) -> Framework:
    """The framework with the scenario's own settings in place of its defaults.

    Raises:
        ScenarioError: a part of a step that has no graph of its own.
    """
    changes: dict[str, Any] = {}
    has_experts = any(b.experts for b in model.blocks)
    if scenario.fused_attention is not None:
        changes["has_fused_attention"] = scenario.fused_attention
    is_fused = changes.get("has_fused_attention", framework.has_fused_attention)
    if scenario.native_attention is not None:
        changes["has_native_attention"] = scenario.native_attention
        if not (is_fused and any(isinstance(b.mixer, SoftmaxAttention) for b in model.blocks)):
            notes.append("native_attention: no effect on this job: no fused attention runs in it")
    if scenario.cuda_graphs is not None:
        scopes = read_scopes(scenario.cuda_graphs)
        changes["cuda_graphs"] = scenario.cuda_graphs
        if scopes and scopes <= {EXPERTS, ROUTER, MAPS} and not has_experts:
            notes.append(f"cuda_graphs: no effect on this job: {model.name} has no experts")
    if scenario.overlap_micro_batches is not None:
        changes["overlaps_experts"] = scenario.overlap_micro_batches
        if not has_experts:
            notes.append(f"overlap_micro_batches: no effect on this job: {model.name} has no experts")
    return replace(framework, **changes) if changes else framework

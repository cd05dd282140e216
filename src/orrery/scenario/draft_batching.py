"""``draft_batching`` of a scenario: what it needs, and what cannot stand beside it."""

from typing import cast

from orrery.base.errors import ScenarioError
from orrery.scenario.schema import Scenario
from orrery.serving.ragged import WAYS, Way
from orrery.serving.simulation.service import Service

BESIDE = (
    "rate",
    "users",
    "trace",
    "turns",
    "calls",
    "prefix_tokens",
    "prefill_replicas",
    "split",
    "fill_tokens",
    "policy",
    "queue",
    "lend_cache",
    "overlap",
    "swap",
    "preemption",
    "kv_kept_tokens",
    "kv_kept_bytes",
)
"""Settings of engines with paged caches and continuous batches."""


def check_ragged(scenario: Scenario) -> None:
    """Refuse a batching without drafts, and settings that padded batches know nothing of."""
    if scenario.draft_batching is None:
        if scenario.draft_pool is not None:
            raise ScenarioError('draft_pool: no sequences are pooled; write draft_batching = "pool" beside it.')
        return
    if scenario.draft_batching not in WAYS:
        raise ScenarioError(f"draft_batching: got {scenario.draft_batching!r}; write one of {', '.join(WAYS)}.")
    if scenario.draft_pool is not None and scenario.draft_batching != "pool":
        raise ScenarioError(f'draft_pool: draft_batching = "{scenario.draft_batching}" has no pool; leave it out.')
    for name in BESIDE:
        if getattr(scenario, name) is not None:
            raise ScenarioError(
                f"{name}: a batch in one padded tensor is formed of requests that are all there, and kept to its end; "
                f"leave out {name}, or leave out draft_batching (paged caches)."
            )
    if (scenario.replicas or 1) > 1 or (scenario.pp or 1) > 1 or (scenario.dp or 1) > 1:
        raise ScenarioError("draft_batching: is of one replica on one pipeline stage; leave out replicas, pp and dp.")


def ragged_way(scenario: Scenario, service: Service) -> Way:
    """The way that is asked for, where drafts are a row: a tree's branches share no tail to align."""
    found = cast(Way, scenario.draft_batching)  # checked above
    if service.speculation is None:
        raise ScenarioError(
            "draft_batching: nothing is drafted; write draft_model, draft_tokens = 4 and acceptance = 0.7 beside it."
        )
    return found

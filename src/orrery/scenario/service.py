"""The service of a scenario: its pools of replicas and everything that they do beyond a plain engine."""

from dataclasses import fields, replace
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.layout import TREE_METHODS, Deployment, Layout
from orrery.execution.speculation import Speculation, of_head, with_draft
from orrery.execution.transfer import TRANSFERS
from orrery.fleet.power.phases import clocked
from orrery.hardware.cluster import Cluster
from orrery.scenario.acceptance import Ranked, read_acceptance
from orrery.scenario.adapters import adapter_notes, adapters_of
from orrery.scenario.clock import at_clock, clock_notes
from orrery.scenario.draft_trees import with_tree
from orrery.scenario.drafting import ROWS, draft_notes
from orrery.scenario.kept_cache import compression_notes
from orrery.scenario.knobs import read_knobs
from orrery.scenario.objectives import request_limits_s
from orrery.scenario.resolve import (
    backend_notes,
    check_layout,
    deploy,
    engine_on,
    find,
    formats_of,
    layout_of,
    one_device,
    workload_of,
)
from orrery.scenario.schema import Scenario
from orrery.serving.simulation.service import Filling, Pool, Service, Split
from orrery.serving.workload import Workload

CIPHER = "core_bytes_per_s"
"""The knob of encrypted transfers that says what a core encrypts."""

SENDS = ("blocking", "non-blocking")

DRAFT_TOKENS = 4
"""Draft tokens of a step where nobody says."""

PREFILL_DEGREES = ("prefill_tp", "prefill_pp", "prefill_dp", "prefill_ep")
"""Parallel degrees of replicas for prompts alone; without any, they are those of the others."""

OF_PREFILL = (*PREFILL_DEGREES, "prefill_device", "prefill_clock_frac", "layerwise_transfer", "max_prefill_queue")
"""Settings of separate replicas for prompts."""


def service_for(scenario: Scenario) -> tuple[Service, tuple[str, ...]]:
    """The service, and a note for every default that it took."""
    _refuse_composition(scenario)
    parts = find(scenario, one_device(scenario))
    parts = replace(parts, device=at_clock(scenario, parts.device))
    layout, layout_notes = layout_of(scenario, parts)
    formats, format_notes = formats_of(scenario, parts)
    plain = replace(deploy(scenario, parts, layout, formats), adapters=adapters_of(scenario))
    deployment, drafting = with_tree(scenario, plain, _steady(scenario))
    given: dict[str, Any] = {
        name: value
        for name in (
            "policy",
            "queue",
            "router",
            "overlap",
            "transfer",
            "swap",
            "preemption",
            "prefix_caching",
            "host_cache_bytes",
        )
        if (value := getattr(scenario, name)) is not None
    }
    knobs = read_knobs(scenario.knob)
    for seat in ("policy", "queue", "router", "overlap", "transfer", "swap"):
        if knobs[seat]:
            given[f"{seat}_knobs"] = knobs[seat]
    _with_cipher(scenario, given)
    service = Service(
        pools=_pools(scenario, deployment),
        speculation=_speculation(scenario, deployment),
        compression=deployment.compression,
        split=_split(scenario),
        filling=_filling(scenario),
        lends_cache=bool(scenario.lend_cache),
        overlaps_sends=overlaps_sends(scenario),
        is_same_node=bool(scenario.same_node),
        is_layerwise=bool(scenario.layerwise_transfer),
        max_prefill_queue=scenario.max_prefill_queue or 0,
        **given,
    )
    return service, (
        *parts.notes,
        *layout_notes,
        *format_notes,
        *backend_notes(deployment),
        *clock_notes(scenario, parts.device),
        *draft_notes(scenario, deployment.draft_head),
        *(drafting.notes() if drafting else ()),
        *compression_notes(scenario, deployment),
        *adapter_notes(scenario, deployment),
    )


def _refuse_composition(scenario: Scenario) -> None:
    """Refuse it in answers that go through an engine's steps."""
    if scenario.composition is not None or scenario.switch_bytes_per_s is not None:
        raise ScenarioError(
            "composition: expert models take turns, which `orrery simulate` answers by one run, without searches and "
            "sweeps; leave out composition and switch_bytes_per_s here."
        )


def _steady(scenario: Scenario) -> Workload | None:
    """The traffic of one replica as an estimate has it; None where requests are all there at once, or follow others."""
    given = [scenario.concurrency, scenario.users, scenario.rate, scenario.trace]
    has_lengths = scenario.trace is not None or (scenario.input_tokens and scenario.output_tokens)
    if scenario.draft not in TREE_METHODS or not any(given) or not has_lengths:
        return None
    found, replicas = workload_of(scenario)[0], scenario.replicas or 1
    return replace(
        found,
        concurrency=max(1, round(found.concurrency / replicas)) if found.concurrency else 0,
        request_rate_per_s=found.request_rate_per_s / replicas,
    )


def _pools(scenario: Scenario, deployment: Deployment) -> tuple[Pool, ...]:
    replicas = scenario.replicas or 1
    if scenario.prefill_replicas is None:
        for name in OF_PREFILL:
            if getattr(scenario, name) is not None:
                raise ScenarioError(f"{name}: there are no separate replicas for prompts; write prefill_replicas = 1.")
        return (Pool(deployment=deployment, replicas=replicas),)
    prompts = _for_prompts(scenario, deployment)
    return (
        Pool(deployment=prompts, replicas=scenario.prefill_replicas, role="prompts"),
        Pool(deployment=deployment, replicas=replicas, role="answers"),
    )


def _for_prompts(scenario: Scenario, deployment: Deployment) -> Deployment:
    """The same model and formats on the devices and in the layout of the replicas for prompts."""
    device, engine = deployment.cluster.device, deployment.engine
    if scenario.prefill_device is not None:
        device = get_device(scenario.prefill_device)
        engine = engine_on(device, scenario.engine, scenario.engine_version)
    elif scenario.prefill_clock_frac is not None:
        device = find(scenario, one_device(scenario)).device
    if scenario.prefill_clock_frac is not None:
        device = clocked(device, scenario.prefill_clock_frac)
    elif scenario.prefill_device is not None:
        device = at_clock(scenario, device)
    layout = deployment.layout
    if any(getattr(scenario, name) is not None for name in PREFILL_DEGREES):
        layout = Layout(**{name.removeprefix("prefill_"): getattr(scenario, name) or 1 for name in PREFILL_DEGREES})
    check_layout(layout, deployment.model, deployment.num_redundant_experts)
    cluster = Cluster(device=device, num_devices=layout.num_devices, devices_per_node=device.devices_per_node)
    return replace(deployment, cluster=cluster, layout=layout, engine=engine)


def _speculation(scenario: Scenario, deployment: Deployment) -> Speculation | None:
    if deployment.draft_head is not None:
        return of_head(deployment)
    inputs = [n for n in ROWS if getattr(scenario, n) is not None]
    if not inputs:
        if scenario.acceptance is not None:
            raise ScenarioError("acceptance: nothing is guessed; write draft_tokens = 4 beside it.")
        return None
    listed = read_acceptance(scenario.acceptance_by_position)
    if listed and scenario.acceptance is not None:
        raise ScenarioError("acceptance and acceptance_by_position exclude each other; keep one.")
    if scenario.acceptance is None and not listed:
        raise ScenarioError(f"{inputs[0]}: needs the acceptance rate of draft tokens; write acceptance = 0.7.")
    if "draft_tokens" in inputs and "draft_tree" in inputs:
        raise ScenarioError("draft_tokens and draft_tree exclude each other; keep one.")
    widths = _numbers("draft_tree", scenario.draft_tree, "4,2,1") if scenario.draft_tree else ()
    kind = "tree" if widths else "draft" if scenario.draft_model else "prompt-lookup"
    count = len(widths) or scenario.draft_tokens or len(listed) or DRAFT_TOKENS
    found = Speculation(
        kind=kind,
        draft_tokens=count,
        acceptance_frac=scenario.acceptance or 0.0,
        acceptance_fracs=shares_of(listed, count),
        tree_widths=tuple(int(w) for w in widths),
    )
    if scenario.draft_model is None:
        return found
    draft = replace(deployment, model=get_model(scenario.draft_model, scenario.assume or ""), weight_offload=None)
    return with_draft(found, draft)


def shares_of(listed: Ranked, count: int) -> tuple[float, ...]:
    """A share for each position of a row, or level of a tree of full width; none where one is given for all."""
    if any(len(row) > 1 for row in listed):
        raise ScenarioError(
            "acceptance_by_position: shares by rank are of trees that are chosen for you; write one share a position, "
            'such as 0.85,0.7, or draft = "tree".'
        )
    if listed and len(listed) != count:
        raise ScenarioError(f"acceptance_by_position: {len(listed)} shares for {count} draft tokens; write {count}.")
    return tuple(row[0] for row in listed)


def _with_cipher(scenario: Scenario, given: dict[str, Any]) -> None:
    """The host's rate of encryption as a knob of every transfer that encrypts; refused where none does."""
    if scenario.cipher_bytes_per_s is None:
        return
    found = [seat for seat in ("transfer", "swap") if (name := given.get(seat)) and _encrypts(name)]
    if not found:
        raise ScenarioError(
            'cipher_bytes_per_s: nothing is encrypted; write swap = "encrypted-pipelined" or transfer = '
            '"encrypted-serial" beside it.'
        )
    for seat in found:
        given[f"{seat}_knobs"] = {CIPHER: scenario.cipher_bytes_per_s, **given.get(f"{seat}_knobs", {})}


def _encrypts(name: str) -> bool:
    return CIPHER in {f.name for f in fields(TRANSFERS.get(name).knobs)}


def overlaps_sends(scenario: Scenario) -> bool:
    """Whether pipeline stages compute on while they send."""
    if scenario.pipeline_sends not in (None, *SENDS):
        raise ScenarioError(f"pipeline_sends: got {scenario.pipeline_sends!r}; write one of {', '.join(SENDS)}.")
    return scenario.pipeline_sends == "non-blocking"


def _split(scenario: Scenario) -> Split | None:
    if scenario.split is None:
        return None
    limits = request_limits_s(scenario.slo)
    fracs = _numbers("split", scenario.split, "0.4,0.6")
    if not all(0.0 < frac < 1.0 for frac in fracs):
        raise ScenarioError(
            f"split: got {scenario.split}; answers have a part of the device and prompts the rest, so write parts "
            "between 0 and 1, such as 0.4 (several: the run chooses among them)."
        )
    return Split(answers_fracs=fracs, target_s=limits.get("tpot", 0.0) if len(fracs) > 1 else 0.0)


def _filling(scenario: Scenario) -> Filling | None:
    if scenario.fill_tokens is None:
        for name in ("fill_until_s", "fill_backward_layers", "fill_sequence_tokens"):
            if getattr(scenario, name) is not None:
                raise ScenarioError(f"{name}: nothing fills the steps; write fill_tokens = 2048 beside it.")
        return None
    if scenario.fill_sequence_tokens is not None and scenario.fill_backward_layers is None:
        raise ScenarioError(
            "fill_sequence_tokens: tokens go both ways in the same steps; write fill_backward_layers = 1."
        )
    return Filling(
        step_tokens=scenario.fill_tokens,
        until_s=scenario.fill_until_s or float("inf"),
        sequence_tokens=scenario.fill_sequence_tokens or Filling().sequence_tokens,
        backward_layers=scenario.fill_backward_layers or 0,
    )


def _numbers(name: str, text: str, example: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise ScenarioError(f"{name}: got {text!r}; write comma-separated numbers, such as {example}.") from None

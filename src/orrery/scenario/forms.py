"""Batching and overlap in the closed form: the policies that it covers."""

from dataclasses import replace

from orrery.base.errors import ScenarioError
from orrery.base.technique import ACTS_ALONE
from orrery.execution.engine import Engine
from orrery.execution.layout import Deployment
from orrery.execution.overlap import OVERLAPS, knob_array
from orrery.execution.overlapped import SEQUENTIAL
from orrery.scenario.knobs import read_knobs
from orrery.scenario.schema import Scenario
from orrery.serving.batching import IN_CLOSED_FORM
from orrery.serving.simulation.rules import POLICIES


def with_policy(scenario: Scenario, engine: Engine) -> Engine:
    """The engine with the policy that is asked for; the closed form knows two of them."""
    if (policy := scenario.policy) is None:
        return engine
    technique = POLICIES.get(policy)
    if IN_CLOSED_FORM not in technique.traits:
        known = " and ".join(t.name for t in POLICIES.techniques.values() if IN_CLOSED_FORM in t.traits)
        raise ScenarioError(f"policy: the closed form knows {known}; orrery simulate takes {policy} too.")
    mixes = technique.knobs().mixes
    budget = engine.max_num_batched_tokens
    if chunk := int(read_knobs(scenario.knob)["policy"].get("chunk_tokens", 0)):
        if not mixes:
            raise ScenarioError(f"knob: {policy} has no chunks; policy.chunk_tokens is of chunked-prefill.")
        if scenario.max_num_batched_tokens:
            raise ScenarioError("knob: policy.chunk_tokens and max_num_batched_tokens bound the same step; keep one.")
        budget = min(budget, chunk)
    return replace(engine, has_mixed_steps=mixes, max_num_batched_tokens=budget)


def check_knobs(scenario: Scenario) -> None:
    """Refuse knobs of techniques that the closed form does not have."""
    for seat, given in read_knobs(scenario.knob).items():
        for name in given:
            if seat != "overlap" and (seat, name) != ("policy", "chunk_tokens"):
                raise ScenarioError(
                    f"knob: {seat}.{name} is of orrery simulate; the closed form takes overlap.NAME and "
                    "policy.chunk_tokens."
                )


def overlap_knobs(scenario: Scenario) -> tuple[tuple[str, float], ...]:
    """The knobs of the overlap that is asked for."""
    if scenario.overlap is None:
        return ()
    given = read_knobs(scenario.knob)["overlap"]
    knob_array(OVERLAPS.get(scenario.overlap), **given)
    return tuple(given.items())


def unused_knobs(scenario: Scenario) -> tuple[str, ...]:
    """Notes on knobs whose technique is not asked for."""
    return tuple(
        f"knob: {seat}.{name} is not used; write {seat} beside it"
        for seat, given in (read_knobs(scenario.knob).items() if scenario.knob else ())
        for name in given
        if getattr(scenario, seat) is None
    )


def form_notes(scenario: Scenario, deployment: Deployment) -> tuple[str, ...]:
    """Notes on a policy and an overlap in this deployment, and on an overlap that has nothing to act on."""
    notes = list(unused_knobs(scenario))
    if scenario.policy is not None:
        notes.append(f"policy: {scenario.policy}, of {deployment.engine.max_num_batched_tokens:,} tokens a step")
    if (overlap := deployment.overlap) not in ("", SEQUENTIAL):
        knobs = ", ".join(f"{name} {value:g}" for name, value in deployment.overlap_knobs)
        notes.append(f"overlap: {overlap}" + (f" ({knobs})" if knobs else ""))
        if deployment.layout.tp == 1 and ACTS_ALONE not in OVERLAPS.get(overlap).traits:
            notes[-1] = f"overlap = {overlap}: no effect on this deployment: tp is 1: there is no all-reduce to hide"
    return tuple(notes)

"""Replicas that meet less often than in every step, on a cluster or over wide-area links between sites."""

import math
from dataclasses import asdict
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.technique import Technique
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed, days, refuse_beside, refuse_without
from orrery.training.local_updates import LOCAL_UPDATES, replica_of
from orrery.training.replica import STAYS_APART, Replica, Round, scaling_efficiency

EXCHANGE_BITS = 32
"""Parameters are averaged in 32 bits where nobody says otherwise."""

KNOBS = ("local_steps", "local_neighbours", "exchange_bits", "participation_frac")
FIELD_OF_KNOB = {"num_steps": "local_steps", "num_neighbours": "local_neighbours"}

EXPERTS = (
    "sites_train: each site's model learns from its own part of the data; a router that joins them is not in the time"
)


def check_local_updates(scenario: Scenario) -> None:
    """Refuse knobs without their technique."""
    refuse_without(scenario, "local_updates", KNOBS)
    if scenario.local_updates == "synchronous" and (given := [n for n in KNOBS if getattr(scenario, n) is not None]):
        raise ScenarioError(f"{given[0]}: synchronous updates exchange gradients in every step; leave it out.")
    if scenario.local_updates not in (None, "synchronous"):
        refuse_beside(scenario, "local_updates", ("gradient_overlap",), "replicas exchange once in several steps")
    if scenario.sites_train == "experts":
        refuse_beside(scenario, "sites_train", ("gradient_overlap",), "sites exchange no gradients")
    if scenario.local_updates not in (None, "synchronous") and scenario.sites_train == "experts":
        raise ScenarioError(
            "local_updates: experts of different sites exchange nothing; write sites_train = together, or leave "
            "local_updates out."
        )


def with_local_updates(scenario: Scenario, plain: Changed) -> Changed:
    """The mean step of a round: a replica's own steps, and what of the exchange nothing hides."""
    check_local_updates(scenario)
    name = "isolated" if scenario.sites_train == "experts" else scenario.local_updates
    if name in (None, "synchronous"):
        return plain
    if scenario.sites is not None and plain.layout.pp > 1:
        raise ScenarioError(
            f"sites: pp = {plain.layout.pp} spreads one replica over sites; write pp = 1, so that a site holds whole "
            "replicas."
        )
    technique = LOCAL_UPDATES.get(str(name))
    is_apart = STAYS_APART in technique.traits
    knobs, notes = _knobs(scenario, technique)
    replica = _replica(scenario, plain)
    found: Round = technique.rule(replica, knobs)
    mean_s = found.exposed_s / found.num_steps
    changed = plain.with_parts({"gradient reduction": mean_s, "parameter gathering": 0.0})
    changed = changed.with_more("optimizer", found.extra_bytes)
    tables = (
        _round_table(technique.name, replica, found),
        _ways_table(scenario, "none between sites" if is_apart else technique.name, plain, changed, replica, found),
    )
    if is_apart:
        notes.append(EXPERTS)
    return changed.saying(*tables, notes=tuple(notes))


def _knobs(scenario: Scenario, technique: Technique) -> tuple[Any, list[str]]:
    """The technique's knobs as the scenario sets them, and a note for each default."""
    known, notes, given = asdict(technique.knobs()), list[str](), dict[str, Any]()
    for knob, field in FIELD_OF_KNOB.items():
        value = getattr(scenario, field)
        if value is not None and knob not in known:
            raise ScenarioError(f"{field}: {technique.name} has no such setting; leave it out.")
        if value is not None:
            given[knob] = value
        elif knob in known:
            notes.append(f"{field}: {known[knob]} (default of {technique.name})")
    return technique.knobs(**given), notes


def _replica(scenario: Scenario, plain: Changed) -> Replica:
    dp, part = plain.layout.dp, scenario.participation_frac
    return replica_of(
        plain.job,
        plain.layout,
        (scenario.exchange_bits or EXCHANGE_BITS) / 8.0,
        participants=dp if part is None else max(1, math.ceil(part * dp)),
    )


def _round_table(name: str, replica: Replica, found: Round) -> Table:
    sent = replica.num_parameters * replica.weight_bytes
    row: dict[str, Any] = {
        "steps": found.num_steps,
        "round_s": found.time_s,
        "own_steps_s": found.num_steps * replica.step_s,
        "exposed_s": found.exposed_s,
        "sent_bytes": found.sent_bytes,
        "kept_besides_bytes": found.extra_bytes,
        "rounds_stale": found.num_rounds_stale,
    }
    if found.num_rounds_stale:
        row["least_local_steps"] = max(1, math.ceil(replica.all_reduce_s(sent) / replica.step_s))
    return Table(kind="round", title=f"From one exchange to the next ({name})", rows=(row,))


def _ways_table(
    scenario: Scenario, name: str, plain: Changed, changed: Changed, replica: Replica, found: Round
) -> Table:
    """The technique beside one model whose gradients meet in every step over the same links."""
    together = plain.step_s

    def row(way: str, step_s: float, efficiency: float) -> dict[str, Any]:
        job = plain.job
        return {
            "exchange": way,
            "step_s": step_s,
            "tokens_per_s": job.tokens_per_step / step_s,
            "scaling_efficiency_frac": efficiency,
            **days(scenario, job, step_s),
        }

    rows = (
        row("gradients, every step", together, replica.step_s / together),
        row(name, changed.step_s, scaling_efficiency(replica, found)),
    )
    return Table(kind="exchange", title="Against one exchange of gradients a step", rows=rows)

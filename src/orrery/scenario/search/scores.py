"""Where a network's quality comes from: a file of the user's, its multiply-adds, or a stand-in that says so."""

from dataclasses import replace
from math import isfinite
from pathlib import Path

import numpy as np

from orrery.base.errors import ScenarioError, shown
from orrery.base.user_file import read_user_text, user_path
from orrery.base.user_text import csv_table
from orrery.planner.architecture.problem import Metric
from orrery.planner.architecture.toys import MAX_CHOICES
from orrery.planner.architecture.training import Alone, Shared, TrainingKnobs, even, shared_weights
from orrery.scenario.fields_search import TRAINED
from orrery.scenario.search.costs import Costs, Floats

WORK = "work"
SIGNS = {"score": 1.0, "damage": -1.0}


def scored(costs: Costs, source: str | None, knobs: TrainingKnobs) -> tuple[Metric, str]:
    """The score of the space's networks (more is better), and what to say of it."""
    if source in TRAINED:
        return _trained(costs, str(source), knobs)
    if source is None:
        return costs.stand_in, costs.likened
    if source == WORK:
        if (work := costs.metrics.get(WORK)) is None:
            raise ScenarioError("scores: this space counts no multiply-adds; leave scores out, or bring a file.")
        return work, "score: multiply-adds, which are no quality; networks that compute as much may differ in it"
    return Metric(table=_read(costs, user_path(source))), f"score: {Path(source).name}, added up over choices"


def _trained(costs: Costs, source: str, knobs: TrainingKnobs) -> tuple[Metric, str]:
    """Scores of small networks: each trained by itself, or all with weights that drawn paths share."""
    toy, counts = costs.toy, tuple(len(choice.alternatives) for choice in costs.choices)
    if toy is None or len(counts) > MAX_CHOICES:
        why = "has no small twin" if toy is None else f"has {len(counts)} choices, and twins at most {MAX_CHOICES}"
        raise ScenarioError(f"scores: this space {why}; leave scores out, or bring a file.")
    says = (
        f"score: less the held-out loss of a small twin of each network, really trained on a drawn task ({knobs.steps} "
        "steps a network); it is no accuracy of the space's own networks"
    )
    if source == "trained":
        return Metric(exact=Alone(toy=toy, knobs=knobs)), says
    shared = Shared(toy=toy, knobs=knobs, weights=shared_weights(toy, knobs, even(counts)))
    parent = np.zeros(len(counts), np.int64) if costs.parent is None else costs.parent[0]
    table = shared.replaced(parent, counts)
    constant = float(shared(parent[None])[0]) - float(table[np.arange(len(counts)), parent].sum())
    return Metric(table=table, constant=constant, exact=shared), (
        f"{says}, with weights that all share; where sums are needed, an alternative counts what it changes by itself"
    )


def _read(costs: Costs, path: Path) -> Floats:
    """The table of a file; what it leaves out is an error, since 0 would say that nothing is lost."""
    header, lines = csv_table(read_user_text(path, "score file (CSV)"), path)
    kinds = [name for name in SIGNS if name in header]
    if "alternative" not in header or len(kinds) != 1:
        raise ScenarioError(f"{path}: write columns choice,alternative and either score or damage.")
    places = {choice.name: i for i, choice in enumerate(costs.choices)}
    found = np.full((len(costs.choices), max(len(c.alternatives) for c in costs.choices)), np.nan)
    for cells in lines:
        row = dict(zip(header, cells, strict=True))
        value = _number(row[kinds[0]], f"{path}: {kinds[0]} of {row['alternative']}") * SIGNS[kinds[0]]
        name = row.get("choice", "")
        if name and name not in places:
            raise ScenarioError(
                f"{path}: there is no choice {shown(name)}; they are called like {next(iter(places))!r}."
            )
        for i in [places[name]] if name else places.values():  # a blank choice is every one
            alternatives = costs.choices[i].alternatives
            if row["alternative"] in alternatives:
                found[i, alternatives.index(row["alternative"])] = value
            elif name:
                listed = ", ".join(alternatives)
                raise ScenarioError(f"{path}: {name} has no {shown(row['alternative'])}; it has {listed}.")
    for i, choice in enumerate(costs.choices):
        for j, alternative in enumerate(choice.alternatives):
            if np.isnan(found[i, j]):
                raise ScenarioError(f"{path}: has no {kinds[0]} for {alternative!r} of {choice.name!r}; add that line.")
    return found


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not isfinite(value):
        raise ScenarioError(f"{where}: got {shown(text)}; write a number.")
    return value


def with_score(costs: Costs, source: str | None, knobs: TrainingKnobs) -> tuple[Costs, str]:
    """The space with its score among the metrics, and what to say of it; a reference within the space has one too."""
    score, says = scored(costs, source, knobs)
    reference = dict(costs.reference)
    if costs.parent is not None:
        reference["score"] = float(score.of(costs.parent)[0])
    elif source == WORK:
        reference["score"] = reference[WORK]
    return replace(costs, metrics={**costs.metrics, "score": score}, reference=reference), says

"""Ranks that are not equally fast, round by round, and redundant gradients in place of waiting for the slowest."""

from typing import Any

import numpy as np

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.engine.streams import stream
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed, refuse_without
from orrery.scenario.train_with.number_file import Floats, numbers_of
from orrery.training.coding import CODES, CodingKnobs, Scheme, gradient_code, run_s
from orrery.training.coding.plain import Plain

KNOBS = ("max_stragglers", "burst_rounds", "window_rounds", "wait_frac")
DEFAULTS = {"max_stragglers": 1, "burst_rounds": 1, "window_rounds": 2, "wait_frac": 1.0}

FIXED = ("gradient reduction", "parameter gathering", "update", "once a step")
"""Parts of a step that come after the ranks' own work, however much of the data each has."""

WAITING = "waiting for slow ranks"
"""The part in which a rank is done and others are not."""

DECODED_ROUNDS = 4
WRITE = "one line a round, with the seconds of each data-parallel rank between commas"


def with_stragglers(scenario: Scenario, plain: Changed) -> Changed:
    """Ranks as the trace has them: against the fastest entry of all, each takes so many times the predicted work."""
    refuse_without(scenario, "straggler_coding", KNOBS)
    refuse_without(scenario, "worker_times", ("straggler_coding",))
    if scenario.worker_times is None:
        return plain
    times = numbers_of(scenario.worker_times, "worker_times", WRITE)
    ranks = plain.layout.dp
    if times.shape[1] != ranks:
        raise ScenarioError(
            f"worker_times: {times.shape[1]} columns for dp = {ranks}; write a column for each data-parallel rank."
        )
    slower = times / times.min()
    busy_s = sum(seconds for name, seconds in plain.parts.items() if name not in FIXED)
    waiting = _waited_s(Plain(code=gradient_code(ranks, 0)), slower, busy_s, 0.0)
    rows, notes = [_row("none", 1.0, 0, busy_s + waiting, plain)], list[str]()
    changed = plain.with_parts({WAITING: waiting})
    if scenario.straggler_coding is None:
        return changed.saying(Table(kind="stragglers", title="Unequal ranks", rows=tuple(rows)))
    notes += [f"{name}: {DEFAULTS[name]:g} (default)" for name in KNOBS if getattr(scenario, name) is None]
    wait_frac = float(_given(scenario, "wait_frac"))
    for name in CODES.words:
        if (scheme := _scheme(scenario, name, ranks)) is None or len(times) <= scheme.delay_rounds:
            continue
        more = scheme.load_frac * ranks
        waited = _waited_s(scheme, slower, more * busy_s, wait_frac)
        rows.append(_row(name, more, scheme.delay_rounds, more * busy_s + waited, plain))
        if name == scenario.straggler_coding:
            loads = {part: more * seconds for part, seconds in plain.parts.items() if part not in FIXED}
            changed = plain.with_parts(loads | {WAITING: waited})
            notes.append(f"straggler_coding: {_exactness(scheme, slower, wait_frac)}")
            if scheme.delay_rounds:
                notes.append(
                    f"straggler_coding: gradients come {scheme.delay_rounds} rounds late, so {scheme.delay_rounds + 1} "
                    "models train in turn"
                )
    return changed.saying(
        Table(kind="stragglers", title="Unequal ranks, and redundant gradients", rows=tuple(rows)), notes=tuple(notes)
    )


def _given(scenario: Scenario, name: str) -> float:
    value = getattr(scenario, name)
    return DEFAULTS[name] if value is None else value


def _scheme(scenario: Scenario, name: str, ranks: int) -> Scheme | None:
    """The scheme for so many ranks; None where another one was asked for and this one does not exist."""
    technique = CODES.get(name)
    try:
        knobs = CodingKnobs(
            num_stragglers=int(_given(scenario, "max_stragglers")),
            burst_rounds=int(_given(scenario, "burst_rounds")),
            window_rounds=int(_given(scenario, "window_rounds")),
        )
        return technique.rule(ranks, knobs)
    except ScenarioError:
        if name == scenario.straggler_coding:
            raise
        return None


def _waited_s(scheme: Scheme, slower: Floats, own_s: float, wait_frac: float) -> float:
    """Mean over the rounds of what the round takes beyond the work of a rank as fast as the fastest entry."""
    rounds_s, _ = run_s(scheme, slower, wait_frac)
    return max(0.0, float(rounds_s.mean()) - 1.0) * own_s


def _exactness(scheme: Scheme, slower: Floats, wait_frac: float) -> str:
    """Error of coded gradients, decoded without the given-up ranks, against their sum."""
    rounds = min(len(slower), DECODED_ROUNDS + scheme.delay_rounds)
    _, late = run_s(scheme, slower[:rounds], wait_frac)
    jobs = rounds - scheme.delay_rounds
    chunks = stream(0, "coding/door").standard_normal((jobs, scheme.num_chunks, 3))
    try:
        error = float(np.abs(scheme.decode(chunks, late) - chunks.sum(axis=1)).max())
    except OutOfRange as refusal:
        return str(refusal)
    return f"gradients of {jobs} rounds, decoded without late ranks, differ from their sum by {error:.1g} at most"


def _row(name: str, load_ratio: float, delay: int, own_s: float, plain: Changed) -> dict[str, Any]:
    step_s = own_s + sum(plain.parts[part] for part in FIXED)
    return {"coding": name, "step_s": step_s, "load_ratio": load_ratio, "rounds_late": delay}

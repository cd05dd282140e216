"""``orrery.kernel``: one operator predicted, and timed here where that was asked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.calibrate.measure.backends.backend import Backend, Refusal, time_prepared
from orrery.calibrate.measure.backends.find import find_backend
from orrery.catalog.devices import get_device
from orrery.scenario.kernel import KernelAnswer, Measured, predict_kernel
from orrery.scenario.kernel.operator import Found
from orrery.scenario.kernel.run import read_kernel

BUDGET_S = 0.25
"""How long one operator is timed."""


@typed
def kernel(**settings: Any) -> KernelAnswer:
    """One operator on one or several devices: time with interval, roofs, bytes, and its variants side by side.

    ``op`` and ``device`` are names (``device`` several, with commas), sizes are named as on the command line
    (``m``, ``n``, ``k``, ``query_tokens``, …); ``sweep`` is a text or a list such as ``"m=1:4096:x2"``. With
    ``measure=True`` the library here is timed too, where it runs on such a device.
    """
    question = read_kernel(settings)
    answer, found = predict_kernel(question)
    return _measured(answer, [f for _, f in found]) if question.measure else answer


def _measured(answer: KernelAnswer, found: list[Found]) -> KernelAnswer:
    """The same rows, with what a clock says beside those that a library here can run on such a device."""
    backend = find_backend("")
    others = [name for name in dict.fromkeys(row.device for row in answer.rows) if kind_of(name) != backend.device_kind]
    if others:
        raise ScenarioError(
            f"measure: {', '.join(others)} is not here: this machine has a {backend.device_kind} with {backend.name}. "
            "Leave --measure out, or write a device of that kind (`orrery calibrate device` makes this machine's file)."
        )
    told: dict[int, Measured] = {}
    refused: dict[str, None] = {}
    taken: dict[tuple[Any, ...], Measured | Refusal] = {}
    for i, (row, one) in enumerate(zip(answer.rows, found, strict=True)):
        key = (row.op, row.format, *row.sizes.items())
        if one.op is None:
            refused[f"{row.variant}: no library here runs this variant"] = None
            continue
        if key not in taken:
            taken[key] = _timed(backend, one)
        got = taken[key]
        if isinstance(got, Refusal):
            refused[f"{row.op} in {row.format}: {got.reason}"] = None
        else:
            told[i] = got
    if not told:
        raise ScenarioError("measure: nothing could be timed here. " + "; ".join(refused) + ". Leave --measure out.")
    rows = tuple(replace(row, measured=told.get(i)) for i, row in enumerate(answer.rows))
    notes = (*answer.notes, *(f"not measured: {reason}" for reason in refused), _where(backend, answer))
    return replace(answer, rows=rows, notes=notes)


def kind_of(name: str) -> str:
    """What kind of device it is."""
    return get_device(name).kind


def _timed(backend: Backend, found: Found) -> Measured | Refusal:
    if found.op is None:
        return Refusal(reason="no library here runs this variant")
    prepared = backend.prepare(found.op)
    if isinstance(prepared, Refusal):
        return prepared
    timed = time_prepared(backend, prepared, budget_s=BUDGET_S)
    return Measured(
        time_s=timed.time_s, spread_frac=timed.spread_frac, num_samples=timed.num_samples, library=backend.name
    )


def _where(backend: Backend, answer: KernelAnswer) -> str:
    """On what it was timed; whoever asks about another device is told that the two are not one."""
    facts: Mapping[str, Any] = backend.facts()
    here = facts["title"].value if "title" in facts else backend.device_kind
    others = ", ".join(dict.fromkeys(row.device for row in answer.rows))
    return f"measured with {backend.name} on this machine ({here}); predictions are for {others}"

"""``orrery.kernel``: one operator predicted, and timed here where that was asked."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.calibrate.measure.backends.backend import Backend, Unsupported, time_prepared
from orrery.calibrate.measure.backends.find import find_backend
from orrery.catalog.devices import get_device
from orrery.hardware.device import Device
from orrery.scenario.kernel import KernelAnswer, Measured, predict_kernel
from orrery.scenario.kernel.operator import Found, listed
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
    if not question.measure:
        return answer
    backend = find_backend("").bare()
    _check_here([get_device(name) for name in listed(question.device or "")], backend)
    return _measured(answer, [f for _, f in found], backend)


def _measured(answer: KernelAnswer, found: list[Found], backend: Backend) -> KernelAnswer:
    """The same rows, with what a clock says beside those that a library here can run on such a device."""
    description: dict[int, Measured] = {}
    refused: dict[str, None] = {}
    taken: dict[tuple[Any, ...], Measured | Unsupported] = {}
    for i, (row, one) in enumerate(zip(answer.rows, found, strict=True)):
        key = (row.op, row.format, *row.sizes.items())
        if one.op is None:
            refused[f"{row.variant}: no library here runs this variant"] = None
            continue
        if key not in taken:
            taken[key] = _timed(backend, one)
        got = taken[key]
        if isinstance(got, Unsupported):
            refused[f"{row.op} in {row.format}: {got.reason}"] = None
        else:
            description[i] = got
    if not description:
        raise ScenarioError("measure: nothing could be timed here. " + "; ".join(refused) + ". Leave --measure out.")
    rows = tuple(replace(row, measured=description.get(i)) for i, row in enumerate(answer.rows))
    notes = (*answer.notes, *(f"not measured: {reason}" for reason in refused), _where(backend, answer))
    return replace(answer, rows=rows, notes=notes)


def _check_here(devices: Sequence[Device], backend: Backend) -> None:
    """Refuse to time on another machine than the one that is asked about."""
    title = title_of(backend)
    for device in devices:
        if device.kind != backend.device_kind or not is_same(device.title, title):
            raise ScenarioError(
                f"measure: {device.name} is not here: this machine has {title} ({backend.device_kind}, "
                f"{backend.name}). Leave --measure out, or name this machine's file (`orrery calibrate device` makes "
                "it)."
            )


def title_of(backend: Backend) -> str:
    """Name of the device that a library runs on."""
    facts = backend.facts()
    return str(facts["title"].value) if "title" in facts else backend.device_kind


def is_same(one: str, other: str) -> bool:
    """Whether two titles mean one device: the same words, or a model's number in common (H100, MI300X, 4090)."""
    first, second = (set(re.findall(r"[a-z0-9]+", title.casefold())) for title in (one, other))
    numbers = {word for word in first & second if any(letter.isdigit() for letter in word) and len(word) > 1}
    return first == second or bool({word for word in numbers if not word.endswith(("gb", "gib"))})


def _timed(backend: Backend, found: Found) -> Measured | Unsupported:
    if found.op is None:
        return Unsupported(reason="no library here runs this variant")
    prepared = backend.prepare(found.op)
    if isinstance(prepared, Unsupported):
        return prepared
    timed = time_prepared(backend, prepared, budget_s=BUDGET_S)
    return Measured(
        time_s=timed.time_s, spread_frac=timed.spread_frac, num_samples=timed.num_samples, library=backend.name
    )


def _where(backend: Backend, answer: KernelAnswer) -> str:
    """On what it was timed, and what the predictions are for."""
    others = ", ".join(dict.fromkeys(row.device for row in answer.rows))
    return f"measured with {backend.name} on this machine ({title_of(backend)}); predictions are for {others}"

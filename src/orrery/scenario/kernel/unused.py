"""Notes on settings of an operator that no row of an answer depends on: it is asked again without each of them."""

from collections.abc import Callable, Iterable
from typing import Any

from orrery.base.errors import OrreryError
from orrery.scenario.fields_kernel import NUMBERS, SWITCHES
from orrery.scenario.kernel.answer import KernelRow
from orrery.scenario.kernel.question import KernelQuestion

ASKED = (*(s.name for s in (*NUMBERS, *SWITCHES) if s.name != "measure"), "tensors", "draws", "seed")
"""Settings that are told of; words that choose rows, and other sizes, are not."""


def unused_notes(
    question: KernelQuestion, rows: Iterable[KernelRow], ask: Callable[[KernelQuestion], Iterable[KernelRow]]
) -> tuple[str, ...]:
    """A note for each number, switch and file without which these rows are what ``ask`` finds."""
    given, plain = question.written(), [_shown(row) for row in rows]
    found: list[str] = []
    for name in ASKED:
        if name not in given:
            continue
        try:
            others = [_shown(row) for row in ask(question.model_copy(update={name: None}))]
        except OrreryError:
            continue
        if others == plain:
            found.append(f"{name}: these rows are the same without it")
    return tuple(found)


def _shown(row: KernelRow) -> dict[str, Any]:
    return {name: value for name, value in row.to_json().items() if name != "sizes"}

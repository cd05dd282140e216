"""Layouts by the names that they print: ``tp8 sp pp16 vp8 dp128 mb1 zero3 interleaved``, read back.

A name says everything that differs from one device with one sequence at a time; what it leaves out is off. ``dp`` may
be left out where the devices that are left over become it.
"""

import re
from typing import Any, get_args

from orrery.base.errors import ScenarioError, nearest
from orrery.execution.train.layout import ContextKind, Recompute, Sharding
from orrery.execution.train.modules import MODULES

COUNTS = {
    "tp": "tp",
    "cp": "cp",
    "pp": "pp",
    "vp": "vp",
    "ep": "ep",
    "etp": "etp",
    "dp": "dp",
    "mb": "micro_batch",
    "group": "sharding_group",
    "near": "secondary_group",
    "first": "first_stage_layers",
    "last": "last_stage_layers",
}
"""Letters before a number, and the field that they are."""

_COUNT = re.compile(rf"({'|'.join(COUNTS)})([1-9][0-9]{{0,6}})")
_RECOMPUTE = re.compile(rf"recompute-({'|'.join(get_args(Recompute))})(?:-([1-9][0-9]{{0,4}}))?")
EXAMPLE = "'tp8 sp pp8 dp16 mb1 zero1 1f1b'"


def read_name(text: str, schedules: tuple[str, ...]) -> dict[str, Any]:
    """Fields of the layout called ``text``; ScenarioError where a word is none of a layout's, or stands twice."""
    found: dict[str, Any] = {}
    for word in text.replace(",", " ").split():
        for name, value in _describe(word, text, schedules).items():
            if name in found:
                raise ScenarioError(f"layout: {text!r} says {name} twice; write it once, as in {EXAMPLE}.")
            found[name] = value
    if not found:
        raise ScenarioError(f"layout: is empty; write one such as {EXAMPLE}.")
    plain = {"is_sequence_parallel": False, "sharding": "none", "recompute": "none", "micro_batch": 1, "etp": 1}
    return plain | found


def _describe(word: str, text: str, schedules: tuple[str, ...]) -> dict[str, Any]:
    if match := _COUNT.fullmatch(word):
        return {COUNTS[match[1]]: int(match[2])}
    if match := _RECOMPUTE.fullmatch(word):
        return {"recompute": match[1]} | ({"recompute_layers": int(match[2])} if match[2] else {})
    names = word.removeprefix("recompute-").split("+")
    if word.startswith("recompute-") and set(names) <= {*MODULES}:
        return {"recompute": "selective", "recompute_modules": tuple(m for m in MODULES if m in names)}
    if word == "sp":
        return {"is_sequence_parallel": True}
    if word in get_args(Sharding):
        return {"sharding": word}
    if word in get_args(ContextKind):
        return {"context_kind": word}
    if word in schedules:
        return {"schedule": word}
    known = ("sp", *get_args(Sharding), *get_args(ContextKind), *schedules, *(f"{c}1" for c in COUNTS))
    near = nearest(word, known, 1)
    raise ScenarioError(
        f"layout: {word!r} in {text!r} is no part of a layout; write {near[0]!r} or leave it out."
        if near
        else f"layout: {word!r} in {text!r} is no part of a layout; write one such as {EXAMPLE}."
    )

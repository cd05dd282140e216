"""Validation errors as sentences: the field, the value, and what to write."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from orrery.base.errors import ScenarioError, shown
from orrery.scenario.names import hint
from orrery.scenario.setting import Setting

UNKNOWN = "none is like it: `orrery estimate --help` lists the settings of serving, `orrery train --help` of training."
MAX_MISTAKES = 20
"""That are told; of more, how many there are."""


def validation_errors(error: ValidationError, known: Mapping[str, Setting], where: str = "") -> ScenarioError:
    """Build one error from all that is wrong with some settings, a line each."""
    prefix = f"{where}: " if where else ""
    found = error.errors()
    lines = [prefix + _sentence(e["type"], e["loc"], e["msg"], e["input"], known) for e in found[:MAX_MISTAKES]]
    more = [f"{len(found) - MAX_MISTAKES:,} more mistakes."] if len(found) > MAX_MISTAKES else []
    return ScenarioError("\n".join([*dict.fromkeys(lines), *more]))


def _sentence(kind: str, loc: tuple[int | str, ...], message: str, got: Any, known: Mapping[str, Setting]) -> str:
    """The field, its value, and what to write."""
    name = str(loc[0]) if loc else ""
    detail = message.removeprefix("Value error, ")
    if kind == "extra_forbidden":
        return f"There is no setting {name[:80]!r}; " + (hint(name[:80], known) or UNKNOWN)
    if name not in known:
        return f"{detail}."
    setting, short = known[name], shown(got)
    if kind == "value_error" and "truth value" not in detail:
        return f"{name}: got {short}; {detail}."
    return f"{name}: got {short}; write {setting.expects}, such as {name} = {setting.example}."

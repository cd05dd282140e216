"""Parameters of a sweep's address: settings, the swept ones and their values, and the slider's place."""

import math
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.scenario.merge import TRAFFIC_KINDS
from orrery.web.address import Query, query_of, settings_of
from orrery.web.sweep.parameter import MAX_LINES, MAX_POINTS, Parameter, listed, parameter, spread

DEFAULTS: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": "1024",
    "output_tokens": "256",
    "concurrency": "32",
}
"""Default sweep."""

DEFAULT_POINTS = 32
MAX_ESTIMATES = 240
"""Points of all lines together; an estimate takes some 5 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepInputs:
    """A sweep: every value on every line is one estimate."""

    settings: dict[str, Any]  # what all points have in common
    vary: Parameter
    values: tuple[str, ...]
    by: Parameter | None
    lines: tuple[str, ...]  # values of ``by``; one blank without it
    at: int  # the value that the slider stands on
    controls: dict[str, str]  # how it was asked for, for the form and the address

    def at_point(self, value: str, line: str = "") -> dict[str, Any]:
        """The settings of one point."""
        found = {k: v for k, v in self.settings.items() if k not in self.vary.replaces} | {self.vary.name: value}
        if self.by is None:
            return found
        return {k: v for k, v in found.items() if k not in self.by.replaces} | {self.by.name: line}

    def line_name(self, line: str) -> str:
        """Name of a line."""
        if self.by is None:
            return "estimate"
        return f"{self.by.name} {line}" if self.by.is_number else line

    def query(self, **controls: object) -> str:
        """The address's query, with some of its controls changed."""
        changed = {k: str(v) for k, v in {**self.controls, **controls}.items() if v not in ("", None)}
        return "&".join(part for part in (query_of(self.settings), query_of(changed)) if part)


def asked_of(query: Query) -> SweepInputs:
    """The sweep that an address asks; ScenarioError says what is wrong."""
    settings = settings_of(query)
    if not settings:
        settings = dict(DEFAULTS)
    vary = parameter(query.get("vary") or "concurrency")
    by = parameter(query["by"]) if query.get("by") else None
    if not TRAFFIC_KINDS & {*settings, vary.name, by.name if by else ""}:
        settings["concurrency"] = DEFAULTS["concurrency"]  # stands in the form, where it can be changed
    if by is not None and (by is vary or by.name in vary.replaces or vary.name in by.replaces):
        raise ScenarioError(f"by: {by.name} and {vary.name} cannot vary at once; choose another second setting.")
    controls = _controls(query, vary)
    values = _values(query, vary, controls)
    given = query.get("lines", "") if query.get("was_by", query.get("by")) == query.get("by") else ""
    lines = ("",) if by is None else listed(by, given, MAX_LINES) or _default_lines(by)
    if len(values) * len(lines) > MAX_ESTIMATES:
        raise ScenarioError(
            f"points: {len(values)} on each of {len(lines)} lines are {len(values) * len(lines)}; ask for at most "
            f"{MAX_ESTIMATES} in all."
        )
    if by is not None:
        controls |= {"by": by.name, "lines": ",".join(lines)}
    at = len(values) // 2 if _is_new(query, vary) else _whole(query, "at", len(values) // 2)
    at = min(max(at, 0), len(values) - 1)
    controls["at"] = str(at)
    return SweepInputs(settings=settings, vary=vary, values=values, by=by, lines=lines, at=at, controls=controls)


def _controls(query: Query, vary: Parameter) -> dict[str, str]:
    """Controls for the values: a list where there is one or must be, else a range."""
    given: dict[str, str] = {} if _is_new(query, vary) else dict(query)
    if given.get("values", "").strip() or not vary.is_number:
        return {"vary": vary.name, "values": given.get("values", "").strip() or ",".join(vary.values)}
    if vary.values and not given.get("from", "").strip():
        return {"vary": vary.name, "values": ",".join(vary.values)}
    scale = given.get("scale") or ("log" if vary.is_log else "linear")
    if scale not in ("log", "linear"):
        raise ScenarioError(f"scale: got {scale[:20]!r}; write log or linear.")
    return {
        "vary": vary.name,
        "from": given.get("from", "").strip() or f"{vary.low:g}",
        "to": given.get("to", "").strip() or f"{vary.high:g}",
        "points": given.get("points", "").strip() or str(DEFAULT_POINTS),
        "scale": scale,
    }


def _is_new(query: Query, vary: Parameter) -> bool:
    """Whether another setting was chosen in the form: the range there is that of the last."""
    return query.get("was", vary.name) != vary.name


def _values(query: Query, vary: Parameter, controls: dict[str, str]) -> tuple[str, ...]:
    if "values" in controls:
        found = listed(vary, controls["values"], MAX_POINTS)
        if not found:
            raise ScenarioError(
                f"values: got {controls['values'][:40]!r}; write comma-separated values of {vary.name}."
            )
        return tuple(sorted(found, key=lambda v: number(v, vary.name))) if vary.is_number else found
    low, high = (number(controls[end], end) for end in ("from", "to"))
    return spread(vary, low, high, int(number(controls["points"], "points")), is_log=controls["scale"] == "log")


def number(text: str, name: str) -> float:
    """A finite number that somebody typed."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ScenarioError(f"{name}: got {text[:40]!r}; write a number.")
    return value


def _whole(query: Query, name: str, default: int) -> int:
    text = query.get(name, "").strip()
    return int(number(text, name)) if text else default


def _default_lines(by: Parameter) -> tuple[str, ...]:
    return by.values[:MAX_LINES] or spread(by, by.low, by.high, 4, is_log=by.is_log)

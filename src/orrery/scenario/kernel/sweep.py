"""Sizes that are swept: ``m=1,16,256``, ``m=1:4096:x2``, ``m=0:512:+64``, ``m=1:4096:9``."""

import math
from collections.abc import Mapping, Sequence
from itertools import product

from orrery.base.errors import ScenarioError, nearest
from orrery.scenario.amounts import amount
from orrery.scenario.fields_kernel import ALIASES, SIZES
from orrery.scenario.kernel.operator import Size

MAX_POINTS = 20_000
"""More points than that are a slip of the keyboard."""

KNOWN = {s.name: s for s in SIZES}

FORMS = "m=1,16,256, m=1:4096:x2, m=0:512:+64 or m=1:4096:9"


def read_sweeps(texts: Sequence[str], takes: Sequence[str]) -> dict[str, tuple[Size, ...]]:
    """The values of every size that is swept, in the order given; ``takes`` are the sizes of the operator."""
    found: dict[str, tuple[Size, ...]] = {}
    for text in texts:
        key, equals, rest = text.partition("=")
        name = key.strip().removeprefix("--").replace("-", "_")
        name = ALIASES.get(name, name)
        if not equals or not name or not rest.strip():
            raise ScenarioError(f"sweep: got {text!r}; write a size and its values, such as {FORMS}.")
        if name not in takes:
            near = nearest(name, takes, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ScenarioError(f"sweep: {name!r} is no size of this operator; {hint}Sizes: {', '.join(takes)}.")
        if name in found:
            raise ScenarioError(f"sweep: {name} is given twice; write all its values in one list.")
        found[name] = _values(name, rest.strip(), text)
    if math.prod(len(values) for values in found.values()) > MAX_POINTS:
        raise ScenarioError(f"sweep: more than {MAX_POINTS:,} points; write fewer values.")
    return found


def points(swept: Mapping[str, Sequence[Size]]) -> list[dict[str, Size]]:
    """Every combination, the last size varying fastest; one empty point where nothing is swept."""
    return [dict(zip(swept, values, strict=True)) for values in product(*swept.values())]


def _values(name: str, rest: str, text: str) -> tuple[Size, ...]:
    if ":" not in rest:
        return tuple(dict.fromkeys(_number(name, part, text) for part in rest.split(",") if part.strip()))
    parts = rest.split(":")
    if len(parts) != 3:
        raise ScenarioError(f"sweep: got {text!r}; write first, last and step: {FORMS}.")
    first, last = (_number(name, part, text) for part in parts[:2])
    if last < first:
        raise ScenarioError(f"sweep: got {text!r}, whose last value is below its first; write the smaller one first.")
    step = parts[2].strip()
    values = _times(first, last, step, text) if step[:1] in ("x", "*", "+") else _spaced(first, last, step, text)
    is_whole = KNOWN[name].kind == "count"
    return tuple(dict.fromkeys(round(v) if is_whole else float(v) for v in values))


def _times(first: Size, last: Size, step: str, text: str) -> list[float]:
    """Each value so many times the one before, or so many more."""
    by = _plain(step[1:], text)
    is_sum = step[0] == "+"
    if by <= 0 if is_sum else by <= 1 or first <= 0:
        need = "a step above 0" if is_sum else "a first value above 0 and a ratio above 1"
        raise ScenarioError(f"sweep: got {text!r}; write {need}.")
    count = (last - first) / by if is_sum else math.log(last / first, by)
    if count > MAX_POINTS:
        raise ScenarioError(f"sweep: {text!r} has more than {MAX_POINTS:,} values; write a larger step.")
    steps = range(math.floor(count * (1.0 + 1e-12) + 1e-9) + 1)
    return [first + i * by if is_sum else first * by**i for i in steps]


def _spaced(first: Size, last: Size, step: str, text: str) -> list[float]:
    """Values in even ratios, as many as ``step`` says, both ends included."""
    count = _plain(step, text)
    if count != int(count) or not 2 <= count <= MAX_POINTS or first <= 0:
        raise ScenarioError(f"sweep: got {text!r}; write how many values there are (2 or more), from above 0.")
    return [first * (last / first) ** (i / (int(count) - 1)) for i in range(int(count))]


def _plain(part: str, text: str) -> float:
    try:
        return float(part)
    except ValueError:
        raise ScenarioError(f"sweep: cannot read {part!r} in {text!r}; write {FORMS}.") from None


def _number(name: str, part: str, text: str) -> Size:
    """A value of the setting, with the multipliers and limits that its flag has."""
    setting = KNOWN[name]
    found = amount(part.strip(), name, setting.most)
    if found is None or not setting.least <= found <= setting.most or (setting.kind == "count" and found % 1):
        raise ScenarioError(f"sweep: got {part.strip()!r} in {text!r}; write {setting.expects}.")
    return int(found) if setting.kind == "count" else found

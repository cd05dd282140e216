"""Why a number is what it is, one level at a time."""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.scenario.ask import Answer
from orrery.scenario.reason import Reason
from orrery.scenario.show import readable
from orrery.scenario.why import why


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A number as text, and how much is below it."""

    at: str  # the way to it from the top: "0.2"
    name: str
    value: str
    rule: str
    num_below: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A number, what it is made of, and the facts that entered."""

    node: Node
    parts: tuple[Node, ...]
    facts: tuple[str, ...]


def level(answer: Answer, path: str, at: str = "") -> Level:
    """The number ``path`` of an answer, or the part of it that lies at ``at``."""
    reason = why(answer, path)
    for step in filter(None, at.split(".")):
        if step not in map(str, range(len(reason.parts))):
            raise ScenarioError(f"at: {path} has no part {at[:40]!r}; it has {len(reason.parts)} there.")
        reason = reason.parts[int(step)]
    below = tuple(_node(part, f"{at}.{i}" if at else str(i)) for i, part in enumerate(reason.parts))
    return Level(node=_node(reason, at), parts=below, facts=tuple(fact.cite() for fact in reason.facts))


def _node(reason: Reason, at: str) -> Node:
    name, _, unit = reason.name.partition(": ")
    value = "unknown" if reason.value is None else readable(unit or name.rsplit(".", 1)[-1], reason.value)
    return Node(at=at, name=name, value=value, rule=reason.rule, num_below=len(reason.parts) + len(reason.facts))

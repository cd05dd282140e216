"""Every setting that a command reads and its page does not show at once, in groups that are folded away until wanted.

The groups are those of the list of settings: a new setting of a command stands in its page's form without a line here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from orrery.scenario.fields import SETTINGS
from orrery.web.forms import Field, fields

BINARY = "takes arrays of NumPy, and uploads are text"
GRAPHS = "asks for an epoch on a graph, which has neither model nor batch: orrery train --graph"
RL = "asks for a step of RL post-training, another question than this page's: orrery train --rl"

LEFT_OUT: Mapping[str, str] = {
    "attention_map": BINARY,
    **{s.name: GRAPHS for s in SETTINGS if s.group == "Full-graph training"},
    **{s.name: RL for s in SETTINGS if s.group == "RL post-training"},
}
"""Settings that no form has, with the reason; their commands take them."""

SEARCH_ONLY: Mapping[str, str] = {"against": "ranks a layout of yours in a search: the form of training layouts has it"}
"""Settings that the page of one training job leaves to the form of a search, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Fields under one heading; ``num_set`` of them have a value."""

    title: str
    fields: tuple[Field, ...]
    num_set: int


def names_of(command: str, shown: Collection[str]) -> tuple[str, ...]:
    """The settings that stand in the groups of a command's form, where ``shown`` have fields elsewhere."""
    return tuple(s.name for s in SETTINGS if command in s.commands and s.name not in shown and s.name not in LEFT_OUT)


def groups(settings: Mapping[str, Any], command: str, shown: Collection[str]) -> tuple[Group, ...]:
    """Groups in the order of the help page, each heading once."""
    names = names_of(command, shown)
    by_title: dict[str, list[str]] = {}
    for setting in SETTINGS:
        if setting.name in names:
            by_title.setdefault(setting.group, []).append(setting.name)
    return tuple(
        Group(title=title, fields=fields(settings, held), num_set=sum(name in settings for name in held))
        for title, held in by_title.items()
    )

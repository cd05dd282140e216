"""Techniques that a scenario can switch: which settings turn one on, and what a file must say first.

Whatever stands at one of the seams below is switched by naming it. The rest is listed in ``switches.toml``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from orrery.base.sources import read_toml

FILE = Path(__file__).with_name("switches.toml")

Door = Literal["estimate", "simulate", "train"]

SEATS: Mapping[str, tuple[str, Door]] = {
    "serving.policy": ("policy", "simulate"),
    "serving.queue": ("queue", "simulate"),
    "serving.route": ("router", "simulate"),
    "execution.overlap": ("overlap", "simulate"),
    "execution.transfer": ("transfer", "simulate"),
    "training.schedule": ("schedule", "train"),
    "execution.tensor_overlap": ("tensor_overlap", "train"),
    "execution.expert_overlap": ("expert_overlap", "train"),
    "execution.offload": ("offload", "train"),
}
"""Seam -> the setting that names a technique there, and the question that answers for it."""

INSTEAD: Mapping[str, str] = {
    "policy": "prefill-first", "queue": "fcfs", "router": "round-robin", "overlap": "sequential",
    "transfer": "plain-copy", "schedule": "1f1b", "tensor_overlap": "serial", "expert_overlap": "expert-serial",
    "offload": "all-on-device",
}  # fmt: skip
"""What a deployment that has the technique on already is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """How a technique is turned on in a scenario."""

    name: str
    door: Door
    on: Mapping[str, Any]
    off: Mapping[str, Any] = field(default_factory=dict[str, Any])  # None takes a setting away
    needs: tuple[str, ...] = ()  # one of these settings must stand in the file: no paper can know them
    words: str = ""


@cache
def listed() -> Mapping[str, Switch]:
    """The switches of techniques that are no file of their own, by name."""
    return {name: _read(name, table) for name, table in read_toml(FILE).items()}


def _read(name: str, table: Mapping[str, Any]) -> Switch:
    taken = dict.fromkeys(table.get("without", ()))
    return Switch(
        name=name, door=table["door"], on=table.get("on", {}), off={**table.get("off", {}), **taken},
        needs=tuple(table.get("needs", ())), words=table["words"],
    )  # fmt: skip


def switch_of(technique: str, seams: Mapping[str, str]) -> Switch | None:
    """How a scenario turns a technique on; None where it cannot. ``seams``: technique file -> where it belongs."""
    if found := listed().get(technique):
        return found
    if (seat := SEATS.get(seams.get(technique, ""))) is None:
        return None
    setting, door = seat
    instead = INSTEAD[setting]
    off = {setting: instead} if instead != technique else {}
    return Switch(name=technique, door=door, on={setting: technique}, off=off)

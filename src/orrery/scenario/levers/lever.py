"""One lever: a technique, the settings that turn it on and off, and the commands that take them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Question = Literal["estimate", "simulate", "plan", "train"]
"""A command that answers a deployment in numbers, with and without a technique."""

QUESTIONS: tuple[Question, ...] = ("estimate", "simulate", "plan", "train")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """A technique that a command takes. ``questions`` is empty where the command compares it by itself."""

    name: str
    command: str  # as typed, with what must stand beside it: "orrery simulate --policy layered-prefill"
    questions: tuple[Question, ...] = ()
    on: Mapping[str, Any] = field(default_factory=dict[str, Any])
    off: Mapping[str, Any] = field(default_factory=dict[str, Any])  # None takes a setting away
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])  # turned on with it, where not given
    needs: tuple[str, ...] = ()  # one of these must be given: no model of time can know it
    own: tuple[str, ...] = ()  # settings that mean nothing without it
    inputs: tuple[str, ...] = ()  # numbers whose break-even matters, beside those of the traffic
    measure: tuple[str, ...] = ()  # what must be measured
    extension_point: str = ""  # of the technique's file; blank where it has none
    gains: str = ""
    costs: str = ""
    words: str = ""  # of papers about it, where it has no file
    parts_replicas: bool = False  # replicas are dealt to both phases: compared on as many devices
    is_choice: bool = True  # of whoever runs the deployment; False: a property of the traffic

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that switch it."""
        return tuple(self.on) or self.needs

    @property
    def is_training(self) -> bool:
        """Whether it changes a training job."""
        return self.questions == ("train",)

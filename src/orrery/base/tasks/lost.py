"""A task without a result."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
"""A name of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostTask:
    """The kind and the message of what ended a task."""

    kind: str
    message: str


def lost(error: BaseException) -> LostTask:
    """Return what ended a task, by its error."""
    return LostTask(kind=type(error).__name__, message=str(error) or type(error).__name__)

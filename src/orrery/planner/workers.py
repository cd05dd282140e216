"""Processes and machines that a search may use: its candidates swept in parts, the answer the same to the last bit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from orrery.base.errors import ScenarioError
from orrery.base.tasks import LostTask, results

PART = 128
"""Candidates of one part: some tenths of a second of work, against some milliseconds to hand it over."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """``jobs`` processes of this machine, or the Ray cluster at an address; one job is this process itself."""

    jobs: int = 1
    ray: str = ""

    @property
    def is_alone(self) -> bool:
        """Whether this process does everything itself."""
        return self.jobs <= 1 and not self.ray


HERE = Workers()


def each(
    function: Callable[..., R],
    shared: Any,
    items: Sequence[T],
    workers: Workers,
    on_done: Callable[[int], None],
    size: int = 0,
) -> list[R]:
    """Return ``function(shared, item)`` of every item, in their order; ``on_done`` is told how many are done.

    A part has ``size`` items (0: ``PART``).
    """
    if workers.is_alone:
        found: list[R] = []
        for item in items:
            found.append(function(shared, item))
            on_done(len(found))
        return found
    size = size or PART
    todo = {first: (function, shared, items[first : first + size]) for first in range(0, len(items), size)}
    parts: dict[int, list[R]] = {}
    for first, part in _results(todo, workers):
        parts[first] = part
        on_done(sum(map(len, parts.values())))
    return [one for first in todo for one in parts[first]]


def _results(todo: Mapping[int, tuple[Any, ...]], workers: Workers) -> Iterator[tuple[int, Any]]:
    for key, part in results(part_of, todo, jobs=workers.jobs, ray=workers.ray):
        if isinstance(part, LostTask):
            raise ScenarioError(
                f"A part of the search failed ({part.kind}: {part.message}); write --jobs 1 to see where."
            )
        yield key, part


def part_of(function: Callable[..., R], shared: Any, items: Sequence[T]) -> list[R]:
    """Return the results of one part."""
    return [function(shared, item) for item in items]

"""Tasks that need nothing of each other, in processes of this machine or on a Ray cluster; each result comes once."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orrery.base.tasks.cluster import on_cluster
from orrery.base.tasks.lost import Key, LostTask, lost
from orrery.base.tasks.processes import in_processes

__all__ = ["LostTask", "lost", "results"]


def results(
    function: Callable[..., Any], todo: Mapping[Key, tuple[Any, ...]], *, jobs: int = 1, ray: str = ""
) -> Iterator[tuple[Key, Any]]:
    """Yield the key of every task and what ``function`` returned for its arguments, as tasks end.

    ``ray`` is the address of a cluster (``auto``, ``local``, ``host:port``, ``ray://host:port``) to run on; without it
    ``jobs`` processes of this machine work. A task whose process or machine is lost is run again; one that ends its
    process every time, or raises, yields a ``LostTask``. Function, arguments and results must be picklable; a script
    that calls this needs ``if __name__ == "__main__":`` around the call.
    """
    return on_cluster(function, todo, ray) if ray else in_processes(function, todo, jobs)

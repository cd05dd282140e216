"""Settings on top of others: the flags over a file, a design over the first one."""

from collections.abc import Mapping
from typing import Any

TRAFFIC_KINDS = frozenset({"batch", "concurrency", "users", "rate", "trace"})
"""Settings of which a scenario has one: each says when requests come. A trace may also have its own ``rate``."""


def merged(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the given ones on top; a given kind of traffic replaces what kind there was.

    A ``rate`` alone leaves the trace, whose requests then come at that rate.
    """
    replaced = TRAFFIC_KINDS.intersection(given)
    removed = TRAFFIC_KINDS if replaced else frozenset[str]()
    if replaced == frozenset({"rate"}):
        removed -= {"trace"}
    return {key: value for key, value in settings.items() if key not in removed} | dict(given)

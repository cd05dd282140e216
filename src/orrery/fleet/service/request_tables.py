"""The loop's tables as the control of a fleet needs them, with recorded requests in them or live ones."""

from typing import Any, Protocol

from orrery.serving.requests import Floats, Ints
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables import _kernel as tables


class RequestTables(Protocol):
    """The tables of a run, with a row for each request that is under way."""

    @property
    def world(self) -> tables.SimulationState:
        """The tables as they are now."""
        ...

    @property
    def typed(self) -> Any:
        """The same as compiled code takes them."""
        ...

    def change(self, **tables_by_name: Any) -> None:
        """Put other tables in the place of some."""
        ...

    def mark(self, rows: Ints, *, lost: bool) -> None:
        """Note that requests were on a lost replica, or found none that takes any."""
        ...

    def recent(self, since_s: float, region: int = -1) -> tuple[Floats, Floats]:
        """TTFT, as users see it, of requests whose first token came since then, and TPOT of those that ended since (s);
        of all, or of those that a region serves."""
        ...


def latencies_since(
    world: tables.SimulationState, service: Service, since_s: float, region: int = -1
) -> tuple[Floats, Floats]:
    """TTFT of requests whose first token came since then, and TPOT of those that ended since (s), as rows tell; of all,
    or of those that a region serves."""
    when, req = world.when, world.req
    begun = when[:, tables.FIRST] >= since_s
    ended = (when[:, tables.FINISH] >= since_s) & (req[:, tables.OUTPUT] > 1)
    if region >= 0:
        begun, ended = (which & (req[:, tables.REGION] == region) for which in (begun, ended))
    ttft_s = when[begun, tables.FIRST] - when[begun, tables.ARRIVED_S]
    if region >= 0:
        ttft_s = ttft_s + world.regions.back_s[req[begun, tables.ORIGIN], region]
    spans_s = when[ended, tables.FINISH] - when[ended, tables.FIRST]
    ttft_s = ttft_s + service.entry_s(req[begun, tables.INPUT])
    return ttft_s, spans_s / (req[ended, tables.OUTPUT] - 1)

"""Pages that only a fleet has: each replica's own metrics, as a pod publishes them, and Kubernetes' interfaces."""

from collections.abc import Awaitable, Callable

from orrery.emulator.exchange import Exchange
from orrery.emulator.kubernetes import Kubernetes
from orrery.emulator.metrics import Metrics
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.refusal import RequestError
from orrery.emulator.settings import Settings
from orrery.fleet.service.live_fleet import LiveFleet
from orrery.fleet.service.replicas import DRAINING, SERVING, STATES


class FleetPages:
    """Paths of a fleet."""

    def __init__(self, pace: RealTimeDriver, live: LiveFleet, settings: Settings) -> None:
        self._pace, self._live, self._settings = pace, live, settings
        self.routes: dict[str, dict[str, Callable[[Exchange], Awaitable[None]]]] = {
            "/replicas/{replica}/metrics": {"GET": self._metrics},
            **Kubernetes(pace, live, settings).routes,
        }

    async def _metrics(self, exchange: Exchange) -> None:
        """Metrics page of one replica, its engines numbered from 0; 503 while it does not run."""
        word, replicas = exchange.path.split("/")[2], self._live.replicas
        if not word.isdecimal() or len(word) > 9 or int(word) >= len(replicas):
            raise RequestError(404, f"There is no replica {word[:20]!r}; write 0 to {len(replicas) - 1}.")
        _, state, _, engines = replicas[int(word)]
        if state not in (SERVING, DRAINING):
            raise RequestError(503, f"Replica {word} is {STATES[state]}.")
        names = {engine: k for k, engine in enumerate(engines.tolist())}
        page, kind = Metrics(self._pace, self._settings, lambda: names).page(exchange.header(b"accept"))
        await exchange.whole(page, kind)

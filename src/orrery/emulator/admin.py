"""Levers for whoever runs the server (``--admin``): lose replicas, slow them, scale, let requests fail, make load."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from orrery.base.errors import ScenarioError
from orrery.emulator.bodies import read
from orrery.emulator.exchange import Exchange
from orrery.emulator.faults import Faults
from orrery.emulator.fleet_state import fleet_state
from orrery.emulator.load import Load
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.playback import Playback
from orrery.emulator.refusal import RequestError
from orrery.emulator.settings import Settings
from orrery.fleet.service.live_fleet import LiveFleet
from orrery.serving.live import Snapshot

Tokens = Annotated[int, Meta(ge=1, le=2**31)]


class ReplicaChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """``POST /admin/replicas``: lose one, bring it back, or let its steps take ``factor`` times as long (1: as ever).

    The requests of one that is lost go to the others, or fail where ``retry`` is false.
    """

    replica: Annotated[int, Meta(ge=0, le=2**31)]
    action: Literal["kill", "revive", "slow"]
    factor: Annotated[float, Meta(gt=0, le=1e6)] = 2.0
    retry: bool = True


class Scaling(Struct, kw_only=True, forbid_unknown_fields=True):
    """``POST /admin/scale``: how many replicas take new requests; the others finish what they have."""

    replicas: Annotated[int, Meta(ge=0, le=2**31)]


class FailureInjection(Struct, kw_only=True, forbid_unknown_fields=True):
    """``POST /admin/failures``: the share of requests that fail on purpose."""

    rate: Annotated[float, Meta(ge=0, le=1)]


class Loading(Struct, kw_only=True, forbid_unknown_fields=True):
    """``POST /admin/load``: requests a second (of the service's time) that the server makes itself; 0 ends it."""

    rate: Annotated[float, Meta(ge=0, le=10_000)]
    input_tokens: Tokens = 512
    output_tokens: Tokens = 128


class Admin:
    """The paths under ``/admin``."""

    def __init__(
        self, pace: RealTimeDriver, settings: Settings, faults: Faults, played: Playback | None = None
    ) -> None:
        self._pace, self._settings, self._faults, self._played = pace, settings, faults, played
        self._load, self._factors = Load(pace, settings), dict[int, float]()
        self._targets: int | None = None
        self.routes: dict[str, dict[str, Callable[[Exchange], Awaitable[None]]]] = {
            "/admin": {"GET": self._tell},
            "/admin/config": {"GET": self._configured},
            "/admin/replicas": {"POST": self._change},
            "/admin/scale": {"POST": self._scale},
            "/admin/failures": {"POST": self._fail},
            "/admin/load": {"POST": self._make_load},
        }

    def _state(self) -> dict[str, Any]:
        now = self._pace.live.snapshot()
        if isinstance(self._pace.live, LiveFleet):
            replicas = fleet_state(self._pace.live, now, self._factors)
        else:
            replicas = self._engines(now)
        load = self._load
        return {
            "time_s": self._pace.now_s,
            "speed": self._settings.speed_ratio,
            "replicas": replicas,
            "scaled_to": self._targets,
            "running": int(now.running.sum()),
            "waiting": int(now.waiting.sum()),
            "streams": len(self._pace.streams),
            "failure_rate": self._faults.failure_frac,
            "load": {"rate": load.rate_per_s, "input_tokens": load.input_tokens, "output_tokens": load.output_tokens},
            "played": self._played.state() if self._played is not None else None,
        }

    def _engines(self, now: Snapshot) -> list[dict[str, Any]]:
        rows = zip(now.is_up.tolist(), now.running.tolist(), now.waiting.tolist(), now.cache_frac.tolist(), strict=True)
        return [
            {
                "replica": k,
                "is_up": bool(is_up),
                "slowness": self._factors.get(k, 1.0),
                "running": running,
                "waiting": waiting,
                "kv_cache_usage": cache_frac,
            }
            for k, (is_up, running, waiting, cache_frac) in enumerate(rows)
        ]

    async def _tell(self, exchange: Exchange) -> None:
        await exchange.json(self._state())

    async def _configured(self, exchange: Exchange) -> None:
        s = self._settings
        await exchange.json(
            {
                "served_model_name": list(s.names),
                "max_model_len": s.context_tokens,
                "block_size": s.block_tokens,
                "speed": s.speed_ratio,
                "seed": s.seed,
                "max_num_queued_reqs": s.max_queued,
                "failure_rate": self._faults.failure_frac,
                "has_api_key": bool(s.api_key),
                "cache_config": dict(s.cache_config),
            }
        )

    async def _change(self, exchange: Exchange) -> None:
        wish = read(ReplicaChange, await exchange.body())
        try:
            if wish.action == "kill":
                self._pace.kill(wish.replica, retry=wish.retry)
            elif wish.action == "revive":
                self._pace.revive(wish.replica)
            else:
                self._pace.slow(wish.replica, wish.factor)
                self._factors[wish.replica] = wish.factor
        except ScenarioError as error:
            raise RequestError(400, str(error), "replica") from None
        await self._tell(exchange)

    async def _scale(self, exchange: Exchange) -> None:
        wish = read(Scaling, await exchange.body())
        try:
            self._pace.scale(wish.replicas)
        except ScenarioError as error:
            raise RequestError(400, str(error), "replicas") from None
        self._targets = wish.replicas
        await self._tell(exchange)

    async def _fail(self, exchange: Exchange) -> None:
        self._faults.failure_frac = read(FailureInjection, await exchange.body()).rate
        await self._tell(exchange)

    async def _make_load(self, exchange: Exchange) -> None:
        wish, most = read(Loading, await exchange.body()), self._settings.context_tokens
        if wish.input_tokens + wish.output_tokens > most:
            raise RequestError(
                400, f"input_tokens + output_tokens: at most {most:,}, the longest sequence.", "input_tokens"
            )
        self._load.start(wish.rate, wish.input_tokens, wish.output_tokens)
        await self._tell(exchange)

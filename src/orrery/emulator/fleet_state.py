"""State of a fleet's replicas, as whoever runs the server reads it."""

from collections.abc import Mapping
from typing import Any

from orrery.fleet.service.live_fleet import LiveFleet
from orrery.fleet.service.replicas import STATES
from orrery.serving.live import Snapshot


def fleet_state(live: LiveFleet, now: Snapshot, slowness: Mapping[int, float]) -> list[dict[str, Any]]:
    """Every replica that may run, with its pool, its state and its engines."""
    return [
        {
            "replica": k,
            "pool": live.setup.terms[pool].name,
            **({"region": live.setup.terms[pool].region} if live.setup.regions else {}),
            "state": STATES[state],
            "since_s": since_s,
            "engines": engines.tolist(),
            "slowness": slowness.get(k, 1.0),
            "running": int(now.running[engines].sum()),
            "waiting": int(now.waiting[engines].sum()),
            "kv_cache_usage": float(now.cache_frac[engines].mean()),
        }
        for k, (pool, state, since_s, engines) in enumerate(live.replicas)
    ]

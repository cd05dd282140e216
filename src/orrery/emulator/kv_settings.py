"""Where events of the prefix caches go, as ``--kv-events`` says it."""

import re
from dataclasses import dataclass
from importlib.util import find_spec

from orrery.base.errors import ScenarioError
from orrery.execution.layout import Deployment

ADDRESS = re.compile(r"tcp://(?P<host>\*|[\w.-]+|\[[\w:.%]+\]):(?P<port>[1-9]\d{0,4})|ipc://.+")
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class KVEventSettings:
    """Addresses and form of a server's cache events."""

    endpoint: str  # of the first engine; the next ones have the next ports
    replay: str = ""  # empty: nothing is told again
    topic: str = ""
    connects: bool = False  # to subscribers that bind
    spec_kind: str = "full_attention"  # vLLM's word for what a token's cache is

    @staticmethod
    def of(endpoint: str, replay: str, topic: str, connects: bool, deployment: Deployment) -> "KVEventSettings | None":
        """Settings of a server; ScenarioError where they cannot be, or pyzmq is missing."""
        if not endpoint:
            if replay or topic or connects:
                raise ScenarioError("kv-events: only part of it is said; write --kv-events tcp://127.0.0.1:5557 too.")
            return None
        if find_spec("zmq") is None:
            raise ScenarioError("kv-events needs pyzmq: pip install 'orrery-ai[kv-events]'.")
        for name, address in (("kv-events", endpoint), ("kv-events-replay", replay or endpoint)):
            _check(name, address)
        if replay == endpoint:
            raise ScenarioError(f"kv-events-replay: {replay} is where events go; write another port.")
        is_latent = deployment.model.has_latent_attention
        return KVEventSettings(
            endpoint=endpoint,
            replay=replay,
            topic=topic,
            connects=connects,
            spec_kind="mla_attention" if is_latent else "full_attention",
        )

    @staticmethod
    def address_of(address: str, engine: int) -> str:
        """The address of an engine: the port plus its number, as vLLM's data-parallel ranks have it."""
        before, colon, port = address.rpartition(":")
        if not address.startswith("tcp://"):
            return f"{address}_dp{engine}" if engine else address
        return f"{before}{colon}{int(port) + engine}"


def _check(name: str, address: str) -> None:
    found = ADDRESS.fullmatch(address)
    if found is None or (found["port"] and int(found["port"]) > MAX_PORT):
        raise ScenarioError(
            f"{name}: got {address[:200]!r}; write tcp://HOST:PORT, such as tcp://127.0.0.1:5557, or ipc://FILE."
        )

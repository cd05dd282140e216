"""A socket to listen at, bound before anything is worked out for it."""

import socket

from orrery.base.errors import ScenarioError


def listening(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=4096)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ScenarioError(f"{host}, port {port}: cannot be listened at: {why}.") from None


def address_of(listener: socket.socket) -> str:
    """Where clients reach a socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"

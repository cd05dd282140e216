"""A socket to listen at, bound before anything is worked out for it."""

import socket

from orrery.base.errors import ScenarioError


def listening(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=4096)
    except (OSError, UnicodeError) as error:
        raise not_listening(host, port, error) from None


def not_listening(host: str, port: int, error: OSError | UnicodeError) -> ScenarioError:
    """Why nobody can be heard there."""
    why = error.strerror if isinstance(error, OSError) else error
    return ScenarioError(f"{host}, port {port}: cannot be listened at: {why}.")


def address_of(listener: socket.socket) -> str:
    """Where clients reach a socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"

"""A socket to listen at, bound before anything is worked out for it, and the names under which it may be asked.

A page of another site can give a name of its own this machine's address (DNS rebinding) and then read answers as if
they were that site's. The browser says the name in the Host header, which pages cannot forge: who asks by a name that
is not ours is refused. An address in numbers is nobody's name and needs no permission.
"""

import re
import socket
from collections.abc import Collection, Sequence
from ipaddress import ip_address

from orrery.base.errors import ScenarioError

OWN_NAMES = frozenset({"localhost"})
"""Names of this machine that no other site can take."""

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/@]+))(:\d{1,5})?")

NOT_OURS = "This server is not known by that name; start it with --allow-host NAME."
SEVERAL = "A request names one host; this one names several, or none."


def listening(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes any free one.

    Its connections send at once (TCP_NODELAY, which they inherit): the body of an answer would else wait 40 ms for the
    client's word that the head has come.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=4096)
    except (OSError, UnicodeError) as error:
        raise not_listening(host, port, error) from None
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def not_listening(host: str, port: int, error: OSError | UnicodeError) -> ScenarioError:
    """Why nobody can be heard there."""
    why = error.strerror if isinstance(error, OSError) else error
    return ScenarioError(f"{host}, port {port}: cannot be listened at: {why}.")


def address_of(listener: socket.socket) -> str:
    """Where clients reach a socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def refused_host(hosts: Sequence[str], allowed: Collection[str] = ()) -> tuple[int, str] | None:
    """(status, why) for the Host headers of a request; None where it may be answered.

    ``allowed``: names beside this machine's own, in small letters.
    """
    if len(hosts) != 1:
        return 400, SEVERAL
    found = _HOST.fullmatch(hosts[0].casefold())
    name = (found[1] or found[2]) if found else ""
    if not name or not (name in OWN_NAMES or name in allowed or _is_address(name)):
        return 421, NOT_OURS
    return None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True

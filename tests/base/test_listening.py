"""Connections of a server send what is written to them at once."""

import socket

import pytest

from orrery.base.listening import listening


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_waits_for_no_acknowledgement(host):
    """The head and the body of an answer are two writes; the second one waited 40 ms."""
    if host == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("a machine without IPv6")
    with listening(host, 0) as listener, socket.create_connection(listener.getsockname()[:2]):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

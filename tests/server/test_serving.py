"""Listening sockets. tests/cli/test_serve.py runs whole servers."""

from __future__ import annotations

import socket

import pytest

from pathdex.errors import ConfigError
from pathdex.server.serving import address_of, listen


def test_the_address_of_a_socket() -> None:
    with listen("127.0.0.1", 0) as listening:
        assert address_of(listening) == f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_an_ipv6_address_has_brackets() -> None:
    with socket.socket(socket.AF_INET6) as sock:
        try:
            sock.bind(("::1", 0))
        except OSError:
            pytest.skip("the loopback has no IPv6 address")
        assert address_of(sock) == f"http://[::1]:{sock.getsockname()[1]}"


def test_an_address_in_use() -> None:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"address='127.0.0.1:{port}': cannot listen there \(Address already"):
            listen("127.0.0.1", port)

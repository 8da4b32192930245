"""A listening socket that takes no new connections and resets none."""

from __future__ import annotations

import socket
import sys
import threading
import time

import pytest

from pathdex.server.refusal import has_waiting, refuse_connections, turn_away

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="packet filters are of Linux")


def everything(connection: socket.socket) -> bytes:
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


@linux
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_new_connections_are_refused_and_waiting_ones_are_kept(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listening:
        address = listening.getsockname()[:2]
        with socket.create_connection(address, timeout=20) as early:
            early.sendall(b"hello")
            assert refuse_connections(listening)
            assert has_waiting(listening)
            late: list[BaseException] = []

            def connect() -> None:
                try:
                    socket.create_connection(address, timeout=20).close()
                except OSError as error:
                    late.append(error)

            thread = threading.Thread(target=connect)
            thread.start()
            accepted, _ = listening.accept()
            time.sleep(0.2)
            assert not has_waiting(listening)
            listening.close()
            thread.join()
            assert [type(one) for one in late] == [ConnectionRefusedError]
            with accepted:
                assert accepted.recv(10) == b"hello"
                accepted.sendall(b"answer")
            assert everything(early) == b"answer"


def test_other_sockets_are_left_alone() -> None:
    first, second = socket.socketpair()
    with first, second:
        assert not refuse_connections(first)
    assert not has_waiting(first)


def test_waiting_connections_are_turned_away() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listening:
        clients = [socket.create_connection(listening.getsockname(), timeout=20) for _ in range(20)]
        for place, client in enumerate(clients):
            # Some have sent a request, and one is idle.
            client.sendall(b"x" * 20_000 * (place % 3))
        answers: list[bytes] = []
        reading = threading.Thread(target=lambda: answers.extend(map(everything, clients)))
        reading.start()
        turn_away(listening)
        reading.join()
        for client in clients:
            client.close()
    assert len(answers) == 20
    for answer in answers:
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"\r\nconnection: close\r\n" in answer
        assert b'"message":"the server is stopping; try again later"' in answer

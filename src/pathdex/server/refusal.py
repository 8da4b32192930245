"""Stop a listening socket from taking new connections, without resetting those that it has taken.

Closing a listening socket resets every connection that waits in its queue, and one can always arrive between the last
accept and the close. So the kernel is told first to drop requests for connections (SYN packets): handshakes that have
begun finish, the queue is emptied, and then the socket is closed. A client whose request was dropped repeats it after a
second, and is refused, or reaches the server that took over the port.
"""

from __future__ import annotations

import contextlib
import ctypes
import selectors
import socket
import struct
import sys
import time
from collections.abc import Iterable

from pathdex.errors import Problem
from pathdex.server.errors import SERVER, RequestError

SO_ATTACH_FILTER = 26
_FLAGS, _SYN, _SYN_ACK = 13, 0x02, 0x12
"""Where the TCP header has its flags, and the two that begin a connection."""
TURN_AWAY_SECONDS = 1.0
"""How long a client that is turned away may take to read the response and close the connection."""
_PROGRAM = (
    (0x30, 0, 0, _FLAGS),  # load the byte with the flags
    (0x54, 0, 0, _SYN_ACK),  # keep SYN and ACK
    (0x15, 0, 1, _SYN),  # unless only SYN is set, skip the next line
    (0x06, 0, 0, 0),  # drop the packet
    (0x06, 0, 0, 0xFFFFFFFF),  # keep the packet
)
"""A classic packet filter; each line is an operation, two jumps and a number."""
_QUIET_SECONDS = 0.1


def refuse_connections(listening: socket.socket) -> bool:
    """Begin no further connections on a listening socket, in any process that shares it.

    Connections that have begun can still be accepted. False where the system cannot do this.
    """
    if not sys.platform.startswith("linux") or listening.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    code = b"".join(struct.pack("HBBI", *line) for line in _PROGRAM)
    buffer = ctypes.create_string_buffer(code, len(code))
    try:
        listening.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(_PROGRAM), ctypes.addressof(buffer))
        )
    except OSError:
        return False
    return True


def has_waiting(listening: socket.socket) -> bool:
    """Whether a connection waits to be accepted."""
    return listening.fileno() >= 0 and bool(_readable([listening], 0))


def _readable(sockets: Iterable[socket.socket], seconds: float) -> list[socket.socket]:
    """Those that can be read from. Unlike `select.select`, it takes file descriptors above 1,023."""
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            selector.register(one, selectors.EVENT_READ, one)
        return [key.data for key, _ in selector.select(seconds)]


def turn_away(listening: socket.socket) -> None:
    """Answer the connections that wait with status 503: for a server that stops before it has accepted any."""
    refuse_connections(listening)
    listening.settimeout(_QUIET_SECONDS)
    body = RequestError(503, Problem("the server is stopping", remedy="try again later"), type=SERVER).body()
    head = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n"
    waiting: list[socket.socket] = []
    with contextlib.suppress(OSError):
        while True:
            accepted, _ = listening.accept()
            waiting.append(accepted)
            accepted.setblocking(False)
            with contextlib.suppress(OSError):
                accepted.send(head + b"content-length: %d\r\n\r\n" % len(body) + body)
                accepted.shutdown(socket.SHUT_WR)
    until = time.monotonic() + TURN_AWAY_SECONDS
    while waiting and time.monotonic() < until:
        for one in _readable(waiting, _QUIET_SECONDS):
            if not _read_some(one):
                waiting.remove(one)
                one.close()
    for one in waiting:
        one.close()


def _read_some(connection: socket.socket) -> bool:
    """Discard what the client sends; False once it has closed the connection."""
    with contextlib.suppress(BlockingIOError):
        try:
            return bool(connection.recv(65536))
        except ConnectionError:
            return False
    return True

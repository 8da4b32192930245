"""A link between two network namespaces with latency and loss: packets pass through this process.

    python tests/server/tun_link.py NAMESPACE_A DEVICE_A NAMESPACE_B DEVICE_B

It reads lines of `MILLISECONDS LOSS` from standard input, and ends with it. `tc netem` does the same where the kernel
has it; here no module of the kernel is needed besides TUN.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, TUN_WITHOUT_HEADER = 0x400454CA, 0x1001
LARGEST = 65536


def enter(namespace: str) -> None:
    """Move this thread into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}") as space:
        if libc.setns(space.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")


def open_device(namespace: str, device: str) -> int:
    """A TUN device in a namespace; its packets are read from and written to the descriptor."""
    enter(namespace)
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH22x", device.encode(), TUN_WITHOUT_HEADER))
    return handle


def forward(a: int, b: int) -> None:
    other, randomness = {a: b, b: a}, random.Random(0)
    delay, loss, number = 0.0, 0.0, 0
    waiting: list[tuple[float, int, int, bytes]] = []
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, target, packet = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # The device is not up yet.
                os.write(target, packet)
        timeout = max(0.0, waiting[0][0] - now) if waiting else None
        for ready in select.select([0, a, b], [], [], timeout)[0]:
            if ready == 0:
                line = sys.stdin.buffer.readline().split()
                if not line:
                    return
                delay, loss = float(line[0]) / 1000, float(line[1])
                print("ok", flush=True)
                continue
            packet = os.read(ready, LARGEST)
            if randomness.random() >= loss:
                number += 1
                heapq.heappush(waiting, (time.monotonic() + delay, number, other[ready], packet))


if __name__ == "__main__":
    first, second = (open_device(*sys.argv[place : place + 2]) for place in (1, 3))
    print("ok", flush=True)
    forward(first, second)

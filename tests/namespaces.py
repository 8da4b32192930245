"""Network namespaces and links between them, with latency and loss; needs root, `ip` and /dev/net/tun."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.server.tun_link import enter

T = TypeVar("T")


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def can_isolate() -> bool:
    if os.geteuid() != 0 or not shutil.which("ip") or not Path("/dev/net/tun").exists():
        return False
    name = f"pathdex-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made


def remove_dead_namespaces() -> None:
    """Those of test runs that were killed."""
    for line in run("ip", "netns", "list").splitlines():
        name = line.split()[0]
        if name.startswith("pathdex-") and not Path(f"/proc/{name.rsplit('-', 1)[1]}").exists():
            run("ip", "netns", "del", name)


@contextmanager
def namespace(name: str) -> Iterator[str]:
    """A network namespace; what runs in it must end first."""
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def inside(space: str, work: Callable[[], T]) -> T:
    """What a function returns in a namespace: a thread of this process enters it."""

    def call() -> T:
        enter(space)
        return work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


class Link:
    """A link between two namespaces, whose ends have the addresses 10.77.NUMBER.1 and 10.77.NUMBER.2."""

    def __init__(self, number: int, here: str, there: str) -> None:
        ends = ((here, f"r{number}", 1, 2), (there, "s0", 2, 1))
        script = str(Path(__file__).parent / "server" / "tun_link.py")
        command = [sys.executable, script, *(word for space, device, *_ in ends for word in (space, device))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self._await_ok()
            for space, device, own, other in ends:
                addresses = f"10.77.{number}.{own}", "peer", f"10.77.{number}.{other}"
                run("ip", "-n", space, "addr", "add", *addresses, "dev", device)
                run("ip", "-n", space, "link", "set", device, "up")
        except BaseException:
            self.close()
            raise

    def shape(self, delay: float = 0.0, loss: float = 0.0) -> None:
        """The latency in milliseconds and the loss of packets, in both directions."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{delay} {loss}\n")
        self._process.stdin.flush()
        self._await_ok()

    def _await_ok(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ok\n"

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

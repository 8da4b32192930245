"""The options that say what is held out: those of `pathdex.data.splits.make_split`."""

from __future__ import annotations

from typing import Any

from pathdex.cli.command import gathers, option

PANEL = "Held-out data"

OPTIONS = [
    option("split", str, "users (default, as in the paper), temporal or leave-last.", panel=PANEL),
    option("valid_users", int, "Validation users; default: 5%, at most 1000.", panel=PANEL),
    option("test_users", int, "Test users; default: 5%, at most 1000.", panel=PANEL),
    option("valid_share", float, "Of a temporal split; default 0.1.", panel=PANEL),
    option("test_share", float, "Of a temporal split; default 0.1.", panel=PANEL),
    option("k", int, "Items that leave-last holds out per user; default 1.", panel=PANEL),
]

takes_split = gathers("held_out", OPTIONS)
"""The function gets the given options as `held_out`."""


def as_split(held_out: dict[str, Any]) -> dict[str, Any]:
    """The given options as a request has them: the kind of split, and what that kind takes."""
    return {"kind" if name == "split" else name: value for name, value in held_out.items()}

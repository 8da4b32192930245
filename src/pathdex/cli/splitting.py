"""The options of a split, as `pathdex.data.splits.make_split` takes them."""

from __future__ import annotations

from typing import Any

from pathdex.cli.command import gathers, option

PANEL = "Held-out data"

OPTIONS = [
    option("split", str, "Kind of split: users (default, as in the paper), temporal or leave-last.", panel=PANEL),
    option("valid_users", int, "Number of validation users; default: 5%, at most 1000.", panel=PANEL),
    option("test_users", int, "Number of test users; default: 5%, at most 1000.", panel=PANEL),
    option("valid_share", float, "Share of the interactions, for a temporal split; default 0.1.", panel=PANEL),
    option("test_share", float, "Share of the interactions, for a temporal split; default 0.1.", panel=PANEL),
    option("k", int, "Items held out per user, for leave-last; default 1.", panel=PANEL),
]

takes_split = gathers("held_out", OPTIONS)
"""The function gets the given options as `held_out`."""


def as_split(held_out: dict[str, Any]) -> dict[str, Any]:
    """The given options as a request stores them: `kind` and the options of that kind."""
    return {"kind" if name == "split" else name: value for name, value in held_out.items()}

"""Which column holds the users, the items, the times and the ratings."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from pathdex.data.findings import Finding, error

COMMON_NAMES: dict[str, tuple[str, ...]] = {
    "user": (
        "userid", "user", "users", "uid", "reviewerid", "customerid", "customer", "visitorid", "memberid", "accountid",
        "sessionid", "session", "playlistid",
    ),
    "item": (
        "itemid", "item", "items", "iid", "movieid", "asin", "parentasin", "productid", "product", "trackid", "songid",
        "bookid", "articleid", "newsid", "videoid", "businessid", "contentid", "isbn", "sku",
    ),
    "time": (
        "timestamp", "time", "ts", "datetime", "date", "eventtime", "unixreviewtime", "createdat", "playedat",
    ),
    "rating": ("rating", "ratings", "score", "stars", "overall"),
}  # fmt: skip
"""Names that are understood without being told, in lower case and without `_`; the first that occurs is taken."""


def find_columns(
    columns: Sequence[str], asked: Mapping[str, str | None], required: Sequence[str], source: str
) -> tuple[dict[str, str], list[Finding]]:
    """The column of each role of `asked`: the one named there, else one of `COMMON_NAMES`; and what is wrong."""
    found: dict[str, str] = {}
    problems: list[Finding] = []
    shown = ", ".join(columns) or "none"
    for role, name in asked.items():
        guess = _guess(role, columns) if name is None else name
        if guess is None:
            if role in required:
                hint = f"name it with {role}= or --{role}"
                problems.append(error("D104", f"no {role} column found in {source}; its columns are: {shown}; {hint}"))
        elif guess not in columns:
            close = difflib.get_close_matches(guess, columns, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            problems.append(
                error("D103", f"{role}={guess!r}: {source} has no such column; its columns are: {shown}{hint}")
            )
        else:
            found[role] = guess
    for name in dict.fromkeys(found.values()):
        roles = [role for role in found if found[role] == name]
        if len(roles) > 1:
            given = ", ".join(f"{role}=" for role in roles)
            problems.append(error("D105", f"the column {name!r} of {source} is used for {given}; name one for each"))
    return found, problems


def _guess(role: str, columns: Sequence[str]) -> str | None:
    plain = {_plain(name): name for name in reversed(columns)}
    return next((plain[name] for name in COMMON_NAMES[role] if name in plain), None)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

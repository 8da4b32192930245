"""Finds the columns of users, items, times and ratings in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pathdex.data.findings import Finding, finding
from pathdex.errors import did_you_mean

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
    "rating": ("rating", "ratings", "score", "stars", "overall", "vote", "votes"),
    "weight": ("weight", "weights", "eventweight"),
    "title": (
        "title", "itemtitle", "movietitle", "booktitle", "producttitle", "name", "itemname", "productname", "trackname",
        "songname", "displayname", "headline", "label",
    ),
}  # fmt: skip
"""Names found automatically, in lower case and without `_`; the first one present is used."""


def find_columns(
    columns: Sequence[str], named: Mapping[str, str | None], source: str
) -> tuple[dict[str, str], list[Finding]]:
    """The column of each role of `named`, and the errors. Only times are optional."""
    found: dict[str, str] = {}
    problems: list[Finding] = []
    shown = ", ".join(columns) or "none"
    for role, name in named.items():
        guess = guess_column(role, columns) if name is None else name
        if guess is None:
            if role != "time":
                rule = f"no {role} column found in {source}; its columns are: {shown}"
                problems.append(finding("error", "D104", rule, remedy=_naming(role, columns)))
        elif guess not in columns:
            rule = f"{source} has no such column; its columns are: {shown}{did_you_mean(guess, columns)}"
            problems.append(finding("error", "D103", rule, argument=role, value=guess))
        else:
            found[role] = guess
    for name in dict.fromkeys(found.values()):
        roles = [role for role in found if found[role] == name]
        if len(roles) > 1:
            given = ", ".join(f"{role}=" for role in roles)
            rule = f"the column {name!r} of {source} is used for {given}"
            problems.append(finding("error", "D105", rule, remedy="name one for each"))
    return found, problems


def ambiguous_columns(columns: Sequence[str], named: Mapping[str, str | None], source: str) -> list[Finding]:
    """A warning for users and for items if several columns have one of their names and none was named."""
    found = []
    for role in ("user", "item"):
        names = [name for name in columns if _plain(name) in COMMON_NAMES[role]]
        if role in named and named[role] is None and len(names) > 1:
            taken = guess_column(role, columns)
            shown = ", ".join(repr(name) for name in names)
            rule = f"several columns of {source} could be the {role} ({shown}); {taken!r} is used"
            found.append(finding("warning", "D414", rule, remedy=f"name the right one with {role}= (--{role})"))
    return found


def guess_column(role: str, columns: Sequence[str]) -> str | None:
    """The first column with one of the `COMMON_NAMES` of a role, or None."""
    plain = {_plain(name): name for name in reversed(columns)}
    return next((plain[name] for name in COMMON_NAMES[role] if name in plain), None)


def _naming(role: str, columns: Sequence[str]) -> str:
    remedy = f"name it with {role}= or --{role}"
    if any(name.replace(".", "", 1).isdecimal() for name in columns):
        # A number is rarely the name of a column, so the first row may be data.
        remedy += (
            f"; if the file has no header, pass header=False (--no-header) and {role}='1' (--{role} 1) for column 1"
        )
    return remedy


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

"""Changes of the catalogue as records of a stream, in order with its events.

{"add_item": "x", "like": ["a", "b"], "attributes": {"genre": "drama|crime", "year": 1999}}
{"remove_item": "x"}
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pathdex.data.event_values import BrokenRuleError, parse_id
from pathdex.data.vocabulary import Id
from pathdex.errors import preview

AttributeValue: TypeAlias = str | int | float | bool
ItemAttributes: TypeAlias = Mapping[str, AttributeValue | Sequence[AttributeValue]]
"""Columns of one item. Several values of a column are a list, or text with `|` between them."""

ADD, REMOVE = "add_item", "remove_item"
MAX_LIKE = 100
"""Similar items that one record names."""
MAX_COLUMNS = 64
MAX_VALUES = 256
"""Attributes of one item: columns, and values of a column."""
MAX_FEATURE_LENGTH = 256
"""Characters of a value that is compared; longer text, such as a description, is no attribute to share."""
_SEPARATOR = "|"


@dataclass(frozen=True)
class AddItem:
    """A new item, before its first event."""

    item: Id
    like: tuple[Id, ...] = ()
    """Known items that it is similar to."""
    attributes: ItemAttributes = field(default_factory=dict)


@dataclass(frozen=True)
class RemoveItem:
    """An item that must not be recommended any more."""

    item: Id


ItemChange: TypeAlias = AddItem | RemoveItem


def is_item_change(record: Mapping[str, Any]) -> bool:
    return ADD in record or REMOVE in record


def parse_item_change(record: Mapping[str, Any]) -> ItemChange:
    """The change in a JSON object; `BrokenRuleError` says what is wrong with it. Other keys are ignored."""
    if ADD in record and REMOVE in record:
        raise BrokenRuleError(f"{ADD} and {REMOVE} exclude each other; write two records")
    if REMOVE in record:
        return RemoveItem(parse_id(REMOVE, record[REMOVE]))
    like = record.get("like")
    if like is None:
        like = []
    if not isinstance(like, list | tuple):
        raise BrokenRuleError(f"like must be a list of ids, not {preview(like)}")
    if len(like) > MAX_LIKE:
        raise BrokenRuleError(f"like has {len(like):,} ids; at most {MAX_LIKE} are allowed")
    item = parse_id(ADD, record[ADD])
    return AddItem(item, tuple(parse_id("like", one) for one in like), check_attributes(record.get("attributes")))


def check_attributes(given: Any) -> dict[str, AttributeValue | list[AttributeValue]]:
    """Attributes of one item, without columns that have no value. `BrokenRuleError` if they cannot be compared."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BrokenRuleError(f"attributes must map columns to values, not {preview(given)}")
    if len(given) > MAX_COLUMNS:
        raise BrokenRuleError(f"attributes has {len(given):,} columns; at most {MAX_COLUMNS} are allowed")
    checked: dict[str, AttributeValue | list[AttributeValue]] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise BrokenRuleError(f"attributes: the column {preview(name)} must be text")
        _check_text("attributes", name)
        if isinstance(value, list | tuple):
            if len(value) > MAX_VALUES:
                raise BrokenRuleError(f"attributes: {name!r} has {len(value):,} values; at most {MAX_VALUES}")
            checked[name] = [_check_value(name, one) for one in value if one is not None]
        elif value is not None:
            checked[name] = _check_value(name, value)
    return checked


def _check_value(name: str, value: Any) -> AttributeValue:
    if hasattr(value, "item") and not isinstance(value, str | int | float):
        value = value.item()  # A scalar of numpy.
    if isinstance(value, str):
        _check_text(f"attributes: {name!r}", value)
        return value
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise BrokenRuleError(f"attributes: {name!r} must hold text, numbers or booleans, not {preview(value)}")


def _check_text(what: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BrokenRuleError(f"{what} is not valid Unicode text") from None


def features(attributes: ItemAttributes) -> tuple[str, ...]:
    """What an item can share with others: each column with each of its values, sorted, without repeats.

    Text is compared without case and outer spaces, and split at `|`. Numbers with a fraction, such as prices, and long
    texts are left out: that two of them are equal says nothing.
    """
    found: set[str] = set()
    for name, value in attributes.items():
        several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        for one in several:
            found.update(f"{name}={text}" for text in _texts(one))
    return tuple(sorted(found))


def _texts(value: AttributeValue) -> Iterator[str]:
    if isinstance(value, str):
        for part in value.split(_SEPARATOR):
            text = part.strip().casefold()
            if text and len(text) <= MAX_FEATURE_LENGTH:
                yield text
    elif isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, int):
        yield str(value)
    elif value.is_integer():
        yield str(int(value))

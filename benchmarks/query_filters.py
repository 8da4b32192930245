"""The cost of each kind of filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from rich.table import Table

from benchmarks.report import Report
from benchmarks.timing import Task, alternate, ratio, shown
from pathdex.data.attributes import Attributes
from pathdex.data.ragged import Ragged
from pathdex.retrieval.filters import NO_FILTERS, Filters

if TYPE_CHECKING:
    from benchmarks.query import Workload

LISTS = 16
"""Lists of each kind, used in turn."""


def measure(workload: Workload, report: Report) -> None:
    """Time per query by filter, relative to none: by codes, which times the search alone, and by `recommend`."""
    model, sizes = workload.model, workload.sizes
    items = len(model.items)
    share = np.random.default_rng(5).random(items)
    model.attach(Attributes.read(pl.DataFrame({"item_id": np.arange(items), "share": share})))
    denied = _lists(items, min(1000, items // 10))
    few, many = _lists(items, 300), _lists(items, min(50_000, items // 3))
    codes = {
        "none": lambda query: NO_FILTERS,
        "seen": lambda query: workload.seen[query],
        "deny 1,000": lambda query: denied_filters[query % LISTS],
        "allow 300": lambda query: Filters(allow=[few[query % LISTS]]),
        f"allow {len(many[0]):,}": lambda query: Filters(allow=[many[query % LISTS]]),
    }
    ids: dict[str, dict[str, Any]] = {
        "none": {},
        "seen": {"exclude_seen": True},
        "deny 1,000": {"deny": [one.tolist() for one in denied]},
        "allow 300": {"allow": [one.tolist() for one in few]},
        f"allow {len(many[0]):,}": {"allow": [one.tolist() for one in many]},
    }
    for passing in (0.5, 0.05, 0.001):
        mask = share < passing
        codes[f"where {passing:.1%}"] = lambda query, mask=mask: Filters(where=[mask])
        ids[f"where {passing:.1%}"] = {"where": {"share": {"max": passing}}}
    denied_filters = [Filters(exclude=Ragged.from_rows([one])) for one in denied]
    histories = [model.items.ids(one[0]) for one in workload.histories]

    def by_codes(name: str) -> Task:
        def call(query: int) -> Any:
            return model.rank(workload.histories[query], sizes.n, codes[name](query), beam=sizes.beam)

        return Task(call, _count(sizes.queries))

    def by_ids(name: str) -> Task:
        options = {"exclude_seen": False, **ids[name]}

        def call(query: int) -> Any:
            given = {key: value[query % LISTS] if isinstance(value, list) else value for key, value in options.items()}
            return model.recommend(histories[query], sizes.n, beam=sizes.beam, **given)

        return Task(call, _count(sizes.queries))

    search = alternate({name: by_codes(name) for name in codes}, sizes.repeats)
    call = alternate({name: by_ids(name) for name in ids}, sizes.repeats)
    model.attach(None)
    figures = {
        name: {
            "search": search[name].to_dict(),
            "search_over_none": ratio(search[name], search["none"]),
            "recommend": call[name].to_dict(),
            "recommend_over_none": ratio(call[name], call["none"]),
        }
        for name in codes
    }
    table = Table("filter", "search, us", "of none", "recommend, us", "of none", title=f"top {sizes.n} by filter")
    for name, row in figures.items():
        table.add_row(
            name,
            f"{row['search']['microseconds']:,.0f}",
            shown(row["search_over_none"]),
            f"{row['recommend']['microseconds']:,.0f}",
            shown(row["recommend_over_none"]),
        )
    report.add("filters", {"kinds": figures}, table)


def _count(queries: int) -> int:
    return max(LISTS, queries // 5)


def _lists(items: int, length: int) -> list[Any]:
    generator = np.random.default_rng(6)
    return [np.sort(generator.choice(items, length, replace=False)) for _ in range(LISTS)]

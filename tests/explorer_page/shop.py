"""A trained run of the made-up shop, with titles, for the tests of the page and for the pictures in the docs.

python -m tests.explorer_page.shop FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from pathdex.data.demo_catalogue import DemoCatalogue, demo_catalogue
from tests.cli.conftest import call

ITEMS, USERS = 600, 1500
HOSTILE = "<img src=x onerror=\"document.title='injected'\"></script><script>document.title='injected'</script>"
"""A title that would run if the page took it for markup."""
SETTINGS = {
    "num-nodes": 16,
    "depth": 3,
    "paths-per-item": 2,
    "embedding-dim": 32,
    "structure-hidden": 64,
    "learning-rate": 5e-3,
    "item-learning-rate": 5e-3,
    "batch-size": 512,
    "structure-batch-size": 512,
    "path-size": 12,
    "epochs": 4,
    "rounds": 4,
    "final-epochs": 1,
    "next-items": 16,
    "neighbours": 50,
    "path-weight": 0.6,
    "neighbour-weight": 0.5,
    "neighbour-smoothing": 0.02,
    "neighbour-share": 0.4,
    "neighbour-recency": 0.25,
    "popularity-weight": 0.5,
    "beam-size": 8,
    "threads": 1,
}


def write_shop(folder: Path, *, hostile: bool = False) -> None:
    """Write events.csv and items.csv with integer ids; `hostile` replaces the title of the most popular item."""
    shop = demo_catalogue(items=ITEMS, users=USERS, mean_length=20)
    ids = {name: number for number, name in enumerate(shop.paths, start=1)}
    events = shop.frame.with_columns(pl.col("item_id").replace_strict(ids, return_dtype=pl.Int64))
    events.write_csv(folder / "events.csv")
    items = _table(shop, ids)
    if hostile:
        first = events["item_id"].value_counts().sort("count", "item_id", descending=True)["item_id"][0]
        chosen = pl.col("item_id") == first
        items = items.with_columns(pl.when(chosen).then(pl.lit(HOSTILE)).otherwise("title").alias("title"))
    items.write_csv(folder / "items.csv")


def _table(shop: DemoCatalogue, ids: dict[str, int]) -> pl.DataFrame:
    rows = [
        {
            "item_id": ids[name],
            "title": name.capitalize(),
            "interest": "|".join(dict.fromkeys(interest for interest, _ in places)),
            "theme": "|".join(dict.fromkeys(theme for _, theme in places)),
            "price": 2 + (ids[name] * 37) % 90,
        }
        for name, places in shop.paths.items()
    ]
    return pl.DataFrame(rows)


def train_shop(folder: Path, *, seed: int = 0, name: str = "run", **changes: object) -> Path:
    """Train a run on the files of `write_shop`."""
    run = folder / name
    options = [text for key, value in {**SETTINGS, **changes}.items() for text in (f"--{key}", str(value))]
    files = [str(folder / "events.csv"), "--items", str(folder / "items.csv"), "--title", "title"]
    call("train", *files, "--out", run, "--seed", seed, "--quiet", *options)
    return run


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    write_shop(target)
    train_shop(target)
    train_shop(target, seed=1, name="other")

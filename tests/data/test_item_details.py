"""Titles and other details of items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pathdex.data.item_details import ItemDetails, as_details
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError

FILMS = pl.DataFrame(
    {
        "movieId": [260, 1, 7],
        "title": ["Star Wars", "Toy Story", None],
        "genres": [["scifi"], [], None],
        "year": [77, 95, 3],
    }
)


@pytest.fixture
def films() -> ItemDetails:
    return ItemDetails.read(FILMS)


def test_an_item_is_found_by_its_id(films: ItemDetails) -> None:
    assert (films.title(260), films.title("260"), films.title(7), films.title(99)) == (
        "Star Wars",
        "Star Wars",
        None,
        None,
    )
    assert films.details(260) == {"genres": ["scifi"], "year": 77}
    assert films.details(7) == {"year": 3}
    assert films.details(99) == {}
    assert (films.label(1), films.label(7), films.label(99)) == ("1 (Toy Story)", "7", "99")
    assert repr(films) == "ItemDetails(3 items; title 'title'; title: text, genres: list of text, year: integer)"


def test_a_csv_file_with_other_names(tmp_path: Path) -> None:
    file = tmp_path / "shop.csv"
    file.write_text("id;produkt;preis\n007;Löffel;1.5\n8;Gabel;\n")
    details = ItemDetails.read(file, title="produkt")
    assert details.title("007") == "Löffel"
    assert details.details("8") == {}
    assert ItemDetails.read(file).title("007") is None
    assert ItemDetails.read(file).details("007") == {"produkt": "Löffel", "preis": 1.5}


def test_columns_are_chosen() -> None:
    assert ItemDetails.read(FILMS, columns=["year"]).details(1) == {"year": 95}
    assert ItemDetails.read(FILMS, columns=[]).title(1) == "Toy Story"
    assert ItemDetails.read(FILMS, title="year", columns=["genres"]).title(1) == "95"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["gernes"]}, "columns='gernes': the DataFrame has no such column; .*did you mean 'genres'"),
        ({"title": "name"}, "title='name': the DataFrame has no such column"),
        ({"columns": "year"}, "columns='year': must be a list of names; write it as"),
        ({"item": "title"}, "column 'title' of the DataFrame"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ItemDetails.read(FILMS, **options)


def test_tables_that_are_refused() -> None:
    with pytest.raises(DataError, match="has no rows"):
        ItemDetails.read(FILMS.clear())
    with pytest.raises(DataError, match="1 items have more than one row"):
        ItemDetails.read(pl.concat([FILMS, FILMS.head(1)]))
    with pytest.raises(DataError, match="has no column to keep besides 'movieId'; add a title or another column"):
        ItemDetails.read(FILMS.select("movieId"))


def test_a_column_that_is_skipped() -> None:
    frame = FILMS.with_columns(cast=pl.Series([{"a": 1}] * 3))
    with pytest.warns(UserWarning, match=r"columns of these types are not kept: 'cast' \(Struct"):
        assert ItemDetails.read(frame).details(1) == {"genres": [], "year": 95}


def test_arrays_keep_everything(films: ItemDetails) -> None:
    again = ItemDetails.from_arrays(films.description(), films.arrays())
    assert again.to_frame().equals(films.to_frame())
    assert again.title(260) == "Star Wars"
    assert again.details(1) == films.details(1)


def test_a_frame_keeps_everything() -> None:
    odd = ItemDetails.read(FILMS.rename({"title": "item"}), item="movieId", title="item")
    assert odd.to_frame().columns == ["item", "item_", "genres", "year"]
    again = ItemDetails.from_frame(odd.to_frame(), odd.title_column)
    assert again.title(260) == "Star Wars"


def test_it_serves_conditions(films: ItemDetails) -> None:
    items = Vocabulary(np.array([1, 260, 5]))
    assert films.attributes().align(items).mask({"genres": "scifi"}).tolist() == [False, True, False]
    assert films.missing(items) == 1
    assert films.missing(Vocabulary(["260", "x"])) == 1


def test_details_or_a_source(films: ItemDetails) -> None:
    assert as_details(films) is films
    assert as_details(FILMS).title(260) == "Star Wars"

"""Validation: every finding about a source, in one list."""

import re

import polars as pl
import pytest
from scipy import sparse

from pathdex.data import Finding, read, validate
from pathdex.errors import DataError, DataWarning, Problem


def codes(findings):
    return [finding.code for finding in findings]


def only(findings, code):
    (found,) = [finding for finding in findings if finding.code == code]
    return found


def frame(**columns):
    return pl.DataFrame(columns)


def test_good_data_gives_its_columns_and_size():
    findings = validate(frame(user=[1, 1, 2, 2], item=[1, 2, 1, 2], time=[1, 2, 3, 4]), test_users=1)
    rule = "the DataFrame gives Interactions(2 users, 2 items, 4 interactions)"
    columns = "columns: user = 'user', item = 'item', time = 'time'"
    assert findings == [Finding("info", "D415", Problem(columns)), Finding("info", "D410", Problem(rule))]


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        ("nowhere.csv", {}, ["D101"]),
        (frame(user=[], item=[]), {}, ["D102"]),
        (frame(user=[1]), {"user": "buyer"}, ["D103", "D104"]),
        (frame(id=[1]), {"user": "id", "item": "id"}, ["D105"]),
        (frame(user=[None, 1], item=[[1], [2]]), {}, ["D202", "D201"]),
        (frame(user=[1.5], item=[1], time=["soon"]), {}, ["D203", "D205"]),
        (frame(user=[1], item=[1], time=[float("nan")]), {}, ["D204"]),
        (frame(user=[1, 1, 1], item=[1, 2, 3], rating=["x", None, "-1"]), {"min_rating": 1}, ["D206", "D207"]),
        (frame(user=[1], item=[1]), {"min_interactions": 5}, ["D301"]),
    ],
)
def test_errors_are_those_that_read_raises(source, options, expected):
    findings = validate(source, **options)
    assert codes(findings) == expected
    assert {finding.level for finding in findings} == {"error"}
    with pytest.raises(DataError) as caught:
        read(source, **options)
    assert list(map(str, caught.value.problems)) == [finding.message for finding in findings]


def test_too_few_users_for_the_split():
    findings = validate(frame(user=[1, 1, 2], item=[1, 2, 1], time=[1, 2, 3]), valid_users=1, test_users=1)
    assert str(findings[0]) == (
        "error D302: valid_users + test_users=2: only 1 of 2 users have two or more interactions and can be held out; "
        "lower the numbers or min_interactions"
    )
    assert str(only(findings, "D403")) == (
        "warning D403: 1 of 2 users have one interaction: nothing can be predicted for them, and they are not held "
        "out; min_interactions=2 drops them"
    )


def test_duplicates_are_counted():
    repeated = frame(user=[1, 1, 1], item=[5, 5, 5], time=[2, 2, 3])
    message = "warning D401: 1 rows repeat an earlier user, item and time; they are kept"
    assert str(only(validate(repeated), "D401")) == message
    assert "2 rows repeat an earlier user and item;" in only(validate(repeated.drop("time")), "D401").message


def test_rows_out_of_order_are_an_info():
    findings = validate(frame(user=[1, 2, 1, 1, 2], item=[1, 2, 3, 4, 5], time=[5, 9, 4, 6, 9]))
    message = "info D402: 1 rows are earlier than the previous row of the same user; read sorts them"
    assert str(only(findings, "D402")) == message


def test_confusable_ids_are_reported():
    findings = validate(frame(user=["a", "a ", "012", "12", "b"], item=["x", "7", "7.0", " 7", "y"], time=range(5)))
    assert [finding.message for finding in findings if finding.code in ("D404", "D405")] == [
        "column 'user': 2 user ids differ from another only by white space ('a', 'a '); "
        "they are read as different users",
        "column 'user': 2 user ids differ from another only by how a number is written ('012', '12'); "
        "they are read as different users",
        "column 'item': 2 item ids differ from another only by white space (' 7', '7'); "
        "they are read as different items",
        "column 'item': 1 item ids differ from another only by how a number is written ('7.0'); "
        "they are read as different items",
    ]


def test_the_source_of_the_order_is_reported():
    rows = frame(user=[1, 1], item=[1, 2])
    message = "info D406: the DataFrame has no time column: the row order is used"
    assert str(only(validate(rows), "D406")) == message
    same = validate(rows.with_columns(time=7))
    assert only(same, "D408").message == "all rows of the DataFrame have the same time: the row order is used"
    matrix = only(validate(sparse.csr_array([[1, 1]])), "D407")
    assert matrix.level == "warning"
    assert matrix.message.startswith("the matrix has no order: splits by time and by last items are refused")


def test_unused_ratings_are_reported():
    rows = frame(user=[1, 1], item=[1, 2], stars=[1, 5], time=[1, 2])
    message = "column 'stars' looks like ratings and is not used; min_rating= keeps only rows with at least that rating"
    assert str(only(validate(rows), "D409")) == f"info D409: {message}"
    assert "D409" not in codes(validate(rows, min_rating=1))


def test_validation_does_not_change_the_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("user,item\n1,2\n")
    before = path.stat()
    validate(path)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]


def test_what_looks_wrong_is_listed_and_warned_of(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("user_id,customer_id,item,item,vote\n1.0,9,a,x,-1\n2.0,9,b,y,1,extra\n2.0,9,c,z,1\n")
    warned = [one for one in validate(file, rating="vote") if one.level == "warning"]
    assert [one.code for one in warned] == ["D411", "D412", "D414", "D416", "D413", "D403"]
    assert "the header of" in warned[0].message
    assert "has 'item' more than once; the first column of that name is used" in warned[0].message
    assert "have more than the 5 fields of the first line (lines 3); the rest is ignored" in warned[1].message
    assert "could be the user ('user_id', 'customer_id'); 'user_id' is used; name the right one" in warned[2].message
    with pytest.warns(DataWarning) as caught:
        data = read(file, rating="vote")
    assert [str(one.message) for one in caught] == [one.message for one in warned[:5]]
    assert data.users.ids([0, 1]) == [1, 2]
    assert "D416" not in [one.code for one in validate(file, min_rating=1)]


@pytest.mark.parametrize("column", ["rating", "vote"])
def test_votes_that_are_not_read_are_mentioned_if_some_are_below_zero(tmp_path, column):
    file = tmp_path / "votes.csv"
    file.write_text(f"user,item,{column}\n1,2,1\n1,3,-1\n")
    rule = f"column '{column}' of {file} is not used, and rows with a value below 0 in it are kept; min_rating=0 drops"
    with pytest.warns(DataWarning, match=re.escape(rule)):
        assert read(file).num_interactions == 2
    assert "D416" in [one.code for one in validate(file)]
    assert "D416" not in [one.code for one in validate(file, min_rating=0)]
    file.write_text(f"user,item,{column}\n1,2,1\n1,3,text\n")
    assert "D416" not in [one.code for one in validate(file)]


def test_a_named_column_is_not_ambiguous():
    source = frame(user=[1, 1], customer=[2, 2], item=[1, 2])
    assert "D414" in [one.code for one in validate(source)]
    assert "D414" not in [one.code for one in validate(source, user="customer")]

"""Tables in memory; the usual ones are in `test_formats`."""

import sys
import types

import pytest

from pathdex.data import read
from pathdex.errors import DataError
from tests.data.test_formats import EXPECTED, FRAME, histories


@pytest.fixture
def hugging_face(monkeypatch):
    """Classes with the names and the interface of `datasets`."""
    module = types.ModuleType("datasets")

    class Dataset:
        def with_format(self, kind):
            assert kind == "arrow"
            return self

        def __getitem__(self, rows):
            return FRAME.to_arrow()[rows]

    class DatasetDict(dict):
        pass

    for kind in (Dataset, DatasetDict):
        kind.__module__ = "datasets.arrow_dataset"
        setattr(module, kind.__name__, kind)
    monkeypatch.setitem(sys.modules, "datasets", module)
    return module


def test_a_data_set_of_hugging_face(hugging_face):
    assert histories(read(hugging_face.Dataset())) == EXPECTED


def test_a_data_set_with_parts_is_not_one_table(hugging_face):
    with pytest.raises(DataError, match=r"is not one table\. It has: 'train', 'test'\.; pass one part"):
        read(hugging_face.DatasetDict(train=1, test=2))

"""Interactions to sequences: readers, vocabulary, splits, data set sources, planted data."""

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.readers import read
from pathdex.data.splits import Queries, Split, make_split, split_leave_last, split_temporal, split_users
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary

__all__ = [
    "UNKNOWN",
    "Id",
    "Interactions",
    "Queries",
    "Ragged",
    "Split",
    "Vocabulary",
    "make_split",
    "read",
    "split_leave_last",
    "split_temporal",
    "split_users",
]

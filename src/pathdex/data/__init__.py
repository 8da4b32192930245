"""Interactions to sequences: readers, vocabulary, splits, public data sets, synthetic data."""

from pathdex.data.attributes import AlignedAttributes, Attributes
from pathdex.data.datasets import DATASETS, Dataset, fetch, find_dataset
from pathdex.data.demo_catalogue import DemoCatalogue, demo_catalogue
from pathdex.data.describe import describe
from pathdex.data.findings import Finding
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.readers import read
from pathdex.data.serialization import (
    load_interactions,
    load_queries,
    load_split,
    save_interactions,
    save_queries,
    save_split,
)
from pathdex.data.splits import Queries, Split, make_split, split_leave_last, split_temporal, split_users
from pathdex.data.synthetic import generate, truth_file
from pathdex.data.validate import validate
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary

__all__ = [
    "DATASETS",
    "UNKNOWN",
    "AlignedAttributes",
    "Attributes",
    "Dataset",
    "DemoCatalogue",
    "Finding",
    "Id",
    "Interactions",
    "Queries",
    "Ragged",
    "Split",
    "Vocabulary",
    "demo_catalogue",
    "describe",
    "fetch",
    "find_dataset",
    "generate",
    "load_interactions",
    "load_queries",
    "load_split",
    "make_split",
    "read",
    "save_interactions",
    "save_queries",
    "save_split",
    "split_leave_last",
    "split_temporal",
    "split_users",
    "truth_file",
    "validate",
]

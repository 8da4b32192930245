"""Interactions to sequences: readers, vocabulary, splits, public data sets, synthetic data."""

from pathdex.data.attributes import AlignedAttributes, Attributes
from pathdex.data.datasets import DATASETS, Dataset, fetch, find_dataset
from pathdex.data.demo_catalogue import DemoCatalogue, demo_catalogue
from pathdex.data.describe import describe
from pathdex.data.findings import Finding
from pathdex.data.interactions import Interactions
from pathdex.data.preparation import prepare
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
from pathdex.data.synthetic_habits import Habits
from pathdex.data.synthetic_variants import VARIANTS, Variant, find_variant, generate_variant
from pathdex.data.validate import validate
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary

__all__ = [
    "DATASETS",
    "UNKNOWN",
    "VARIANTS",
    "AlignedAttributes",
    "Attributes",
    "Dataset",
    "DemoCatalogue",
    "Finding",
    "Habits",
    "Id",
    "Interactions",
    "Queries",
    "Ragged",
    "Split",
    "Variant",
    "Vocabulary",
    "demo_catalogue",
    "describe",
    "fetch",
    "find_dataset",
    "find_variant",
    "generate",
    "generate_variant",
    "load_interactions",
    "load_queries",
    "load_split",
    "make_split",
    "prepare",
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

"""Interactions to sequences: readers, vocabulary, splits, data set sources, planted data."""

from pathdex.data.attributes import AlignedAttributes, Attributes
from pathdex.data.catalogue import PlantedCatalogue, planted_catalogue
from pathdex.data.describe import describe
from pathdex.data.findings import Finding
from pathdex.data.interactions import Interactions
from pathdex.data.planted import generate, truth_file
from pathdex.data.ragged import Ragged
from pathdex.data.readers import read
from pathdex.data.sources import SOURCES, DataSource, fetch, find_source
from pathdex.data.splits import Queries, Split, make_split, split_leave_last, split_temporal, split_users
from pathdex.data.storage import (
    load_interactions,
    load_queries,
    load_split,
    save_interactions,
    save_queries,
    save_split,
)
from pathdex.data.validate import validate
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary

__all__ = [
    "SOURCES",
    "UNKNOWN",
    "AlignedAttributes",
    "Attributes",
    "DataSource",
    "Finding",
    "Id",
    "Interactions",
    "PlantedCatalogue",
    "Queries",
    "Ragged",
    "Split",
    "Vocabulary",
    "describe",
    "fetch",
    "find_source",
    "generate",
    "load_interactions",
    "load_queries",
    "load_split",
    "make_split",
    "planted_catalogue",
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

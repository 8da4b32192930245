"""Interactions to sequences: readers, vocabulary, splits, data set sources, planted data."""

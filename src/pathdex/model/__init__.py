"""Sequences to probabilities: torch modules and pure functions on tensors; nothing here knows the index."""

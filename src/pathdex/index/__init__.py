"""Probabilities to item paths: numpy and numba only; nothing here knows torch."""

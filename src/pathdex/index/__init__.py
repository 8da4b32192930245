"""Probabilities to item paths, with numpy and numba only: nothing here imports torch."""

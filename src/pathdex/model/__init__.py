"""Torch modules and losses, independent of the index."""

"""Deep Retrieval: learn a path index from interactions, retrieve by beam search."""

__version__ = "0.1.0.dev0"

"""Metrics, the paper's protocol, significance tests and the retrieval loss."""
